package tokenrequestor

import (
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// ServerClock returns the time of the API server that issues tokens, based on the Date headers of its responses. This
// gives timestamps and tokens the same meaning for replicas whose clocks differ. Before the first response, it returns
// the local time.
type ServerClock struct {
	local  clock.PassiveClock
	offset atomic.Int64
}

// NewServerClock returns a clock that reads the responses of the round tripper that Wrap returns.
func NewServerClock(local clock.PassiveClock) *ServerClock { return &ServerClock{local: local} }

// Now returns the time of the API server with a precision of one second.
func (c *ServerClock) Now() time.Time {
	return c.local.Now().Add(time.Duration(c.offset.Load()))
}

// Wrap returns a transport that reads the dates of successful responses, for rest.Config.Wrap.
func (c *ServerClock) Wrap(next http.RoundTripper) http.RoundTripper {
	return dated{clock: c, next: next}
}

type dated struct {
	clock *ServerClock
	next  http.RoundTripper
}

// RoundTrip sends the request.
func (d dated) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := d.next.RoundTrip(request)
	if err != nil || response.StatusCode >= http.StatusMultipleChoices {
		return response, err // error responses may come from other servers, such as proxies
	}
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		d.clock.offset.Store(int64(date.Sub(d.clock.local.Now())))
	}
	return response, nil
}
