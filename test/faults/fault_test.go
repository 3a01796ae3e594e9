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

// errCrashed is the error of all calls of a crashed process. It makes the process stop.
var errCrashed = errors.New("the resource-manager has crashed")

// fault describes how one call fails.
type fault struct {
	name string
	// ofWritesOnly marks the faults that do not apply to reads, or that a read cannot distinguish from another fault.
	ofWritesOnly bool
	// carriedOut is set if the API server executes the call.
	carriedOut bool
	// crashes is set if the fault stops the resource-manager.
	crashes bool
	// meanwhile changes the applied object by hand before the response arrives. It is nil for no change.
	meanwhile func(*http.Request) (*http.Request, error)
	// recreates is set if the object has to be created again after that.
	recreates bool
	// answer makes the response that the client receives, from that of the API server if the call is executed.
	answer func(*http.Request, *http.Response) (*http.Response, error)
}

// allFaults returns every fault. Short runs use them in turn.
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

// faultsOf returns the faults that are possible for a call.
func faultsOf(c call) []fault {
	return slices.DeleteFunc(allFaults(), func(f fault) bool {
		// An object without the labels of its flow belongs to another owner: the flow reports it and does not touch it.
		return f.ofWritesOnly && c.reads() || f.meanwhile != nil && (!c.appliesSimple() || c.emits() && !f.recreates)
	})
}

// Errors as returned by Go's own transport.
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

// removalOfLabels removes all labels from the object of a request, so that no watch with a label selector shows it
// any more.
func removalOfLabels(applied *http.Request) (*http.Request, error) {
	return byHand(applied, http.MethodPatch, `{"metadata":{"labels":null}}`)
}

// byHand returns a request for the object of another request.
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

// brokenOff returns the first half of a response, and then an error.
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
