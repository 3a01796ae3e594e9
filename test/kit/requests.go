package kit

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Request is a recorded request.
type Request struct {
	Method string
	// Path is the path of the URL, without the query.
	Path string
	// Watch reports whether it requested a watch.
	Watch bool
	// DryRun reports whether it was a dry run, which stores nothing.
	DryRun bool
}

// String returns the method and the path.
func (r Request) String() string { return r.Method + " " + r.Path }

// Requests records the requests that are sent through a transport. The zero value is ready for use.
type Requests struct {
	mu   sync.Mutex
	sent []Request
	// open counts the watches that have not ended, by path and label selector.
	open map[string]int
	// unanswered counts the other requests that have no response yet.
	unanswered int
}

// Wrap returns a transport that records requests, for rest.Config.Wrap.
func (r *Requests) Wrap(next http.RoundTripper) http.RoundTripper {
	return RoundTripper(func(sent *http.Request) (*http.Response, error) {
		watch, _ := strconv.ParseBool(sent.URL.Query().Get("watch"))
		r.mu.Lock()
		r.sent = append(r.sent, Request{sent.Method, sent.URL.Path, watch, sent.URL.Query().Has("dryRun")})
		if !watch {
			r.unanswered++
		}
		r.mu.Unlock()
		response, err := next.RoundTrip(sent)
		if !watch {
			r.mu.Lock()
			r.unanswered--
			r.mu.Unlock()
		}
		if err == nil && watch {
			key := sent.URL.Path + "?" + sent.URL.Query().Get("labelSelector")
			r.note(key, 1)
			response.Body = &watchBody{ReadCloser: response.Body, closed: sync.OnceFunc(func() { r.note(key, -1) })}
		}
		return response, err
	})
}

// watchBody reports when the body of a watch is closed.
type watchBody struct {
	io.ReadCloser
	closed func()
}

// Close closes the body.
func (b *watchBody) Close() error {
	b.closed()
	return b.ReadCloser.Close()
}

func (r *Requests) note(key string, more int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == nil {
		r.open = map[string]int{}
	}
	if r.open[key] += more; r.open[key] == 0 {
		delete(r.open, key)
	}
}

// Watching returns path and label selector, separated by a question mark, of each open watch of a resource in a
// namespace.
func (r *Requests) Watching(namespace, resource string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var watches []string
	for key := range r.open {
		if strings.Contains(key, "/namespaces/"+namespace+"/"+resource+"?") {
			watches = append(watches, key)
		}
	}
	return watches
}

// Watched reports whether a path with a suffix was ever watched.
func (r *Requests) Watched(suffix string) bool {
	return slices.ContainsFunc(r.All(), func(sent Request) bool { return sent.Watch && strings.HasSuffix(sent.Path, suffix) })
}

// Forget drops all recorded requests.
func (r *Requests) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = nil
}

// All returns the requests since the last call of Forget, in order.
func (r *Requests) All() []Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.sent)
}

// Single returns All without watches.
func (r *Requests) Single() []Request {
	return slices.DeleteFunc(r.All(), func(sent Request) bool { return sent.Watch })
}

// Writes returns the write requests among Single, as texts.
func (r *Requests) Writes() []string {
	var sent []string
	for _, request := range r.Single() {
		if request.Method != http.MethodGet {
			sent = append(sent, request.String())
		}
	}
	return sent
}

// quietFor is how long controllers must send no requests to be considered idle.
const quietFor = 2 * time.Second

// Quiet waits until only watches were sent for quietFor since the last response. An API server on a loaded machine may need longer for
// a response, after which controllers send more requests.
func Quiet(tb testing.TB, all ...*Requests) {
	tb.Helper()
	steady := Steady(quietFor)
	EventuallyTrue(tb, "the controllers are at rest", func() bool {
		count := 0
		for _, requests := range all {
			if requests.waiting() {
				steady = Steady(quietFor)
				return false
			}
			count += len(requests.Single())
		}
		return steady(count)
	})
}

// waiting reports whether a request that is not a watch has no response yet.
func (r *Requests) waiting() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unanswered > 0
}

// RoundTripper adapts a function to a transport.
type RoundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (r RoundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// WithHeaders returns a function that wraps a transport, for example of a rest.Config, so that requests have further headers.
func WithHeaders(headers map[string]string) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return RoundTripper(func(request *http.Request) (*http.Response, error) {
			request = request.Clone(request.Context())
			for name, value := range headers {
				request.Header.Set(name, value)
			}
			return next.RoundTrip(request)
		})
	}
}
