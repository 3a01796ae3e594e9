package faults

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// errCrashed is what a process that is no more gets, so that it stops.
var errCrashed = errors.New("the resource-manager has crashed")

// fault is what goes wrong with one call.
type fault struct {
	name string
	// ofWritesOnly marks the faults that a call which changes nothing cannot have, or cannot tell from another one.
	ofWritesOnly bool
	// carriedOut says that the API server carries out the call.
	carriedOut bool
	// crashes ends the resource-manager.
	crashes bool
	// meanwhile is what somebody does by hand to the object that is applied, before the answer comes; nil for nothing.
	meanwhile func(*http.Request) (*http.Request, error)
	// recreates says that the object has to be created anew after that.
	recreates bool
	// answer makes what is received, of what the API server answered if the call is carried out.
	answer func(*http.Request, *http.Response) (*http.Response, error)
}

// allFaults returns every fault. Short runs take one after the other.
func allFaults() []fault {
	return []fault{
		{name: "crash-after", ofWritesOnly: true, carriedOut: true, crashes: true, answer: withError(errCrashed)},
		{name: "timeout-after", ofWritesOnly: true, carriedOut: true, answer: withError(errTimeout)},
		{name: "crash-before", crashes: true, answer: withError(errCrashed)},
		{name: "conflict-409", ofWritesOnly: true, answer: withStatus(
			apierrors.NewConflict(schema.GroupResource{Resource: "things"}, "thing", errors.New("it has been changed")))},
		{name: "reset", carriedOut: true, answer: brokenOff},
		{name: "failed-500", answer: withStatus(apierrors.NewInternalError(errors.New("etcdserver: leader changed")))},
		{name: "throttled-429", answer: withStatus(apierrors.NewTooManyRequests("too many requests, please try again", 1))},
		{name: "timeout-before", answer: withError(errTimeout)},
		{name: "unavailable-503", answer: withStatus(apierrors.NewServiceUnavailable("the server is shutting down"))},
		{name: "deleted-after", ofWritesOnly: true, carriedOut: true, meanwhile: deletion, recreates: true, answer: asItIs},
		{name: "unlabelled-after", ofWritesOnly: true, carriedOut: true, meanwhile: removalOfLabels, answer: asItIs},
	}
}

// faultsOf returns the faults that a call can have.
func faultsOf(c call) []fault {
	return slices.DeleteFunc(allFaults(), func(f fault) bool {
		// What has lost the labels of its flow belongs to others: the flow reports it and leaves it alone.
		return f.ofWritesOnly && c.reads() || f.meanwhile != nil && (!c.appliesSimple() || c.emits() && !f.recreates)
	})
}

// Errors as Go's own transport has them.
var (
	errTimeout = &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
	errReset   = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
)

func withError(err error) func(*http.Request, *http.Response) (*http.Response, error) {
	return func(*http.Request, *http.Response) (*http.Response, error) { return nil, err }
}

// withStatus answers as API servers do.
func withStatus(failure *apierrors.StatusError) func(*http.Request, *http.Response) (*http.Response, error) {
	return func(request *http.Request, _ *http.Response) (*http.Response, error) {
		status := failure.Status()
		status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		body, err := json.Marshal(status)
		if err != nil {
			return nil, err
		}
		header := http.Header{"Content-Type": {"application/json"}}
		if status.Code == http.StatusTooManyRequests {
			header.Set("Retry-After", "1")
		}
		return &http.Response{
			StatusCode: int(status.Code), Status: http.StatusText(int(status.Code)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: request,
		}, nil
	}
}

func asItIs(_ *http.Request, response *http.Response) (*http.Response, error) { return response, nil }

// deletion deletes the object of a request.
func deletion(applied *http.Request) (*http.Request, error) {
	return byHand(applied, http.MethodDelete, "")
}

// removalOfLabels takes all labels off the object of a request, so that no watch for a label shows it any more.
func removalOfLabels(applied *http.Request) (*http.Request, error) {
	return byHand(applied, http.MethodPatch, `{"metadata":{"labels":null}}`)
}

// byHand returns a request to the object of another one.
func byHand(applied *http.Request, method, body string) (*http.Request, error) {
	url := *applied.URL
	url.RawQuery = "fieldManager=kubectl-edit"
	request, err := http.NewRequestWithContext(applied.Context(), method, url.String(), strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header = http.Header{"Content-Type": {"application/merge-patch+json"}, "Accept": {"application/json"}}
	return request, nil
}

// brokenOff returns the first half of an answer, and then an error.
func brokenOff(_ *http.Request, response *http.Response) (*http.Response, error) {
	body, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body[:len(body)/2]), failingReader{errReset}))
	return response, nil
}

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }
