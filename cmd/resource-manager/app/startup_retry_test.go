package app

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/go-logr/logr"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/trellis-k8s/trellis/pkg/restclient"
	"github.com/trellis-k8s/trellis/test/kit"
)

// hastyClock is a fake clock that advances by each duration that is waited for, without waiting.
type hastyClock struct{ *clocktesting.FakeClock }

func (c hastyClock) After(d time.Duration) <-chan time.Time {
	c.Step(d)
	passed := make(chan time.Time, 1)
	passed <- c.Now()
	return passed
}

// answers simulates an API server that gives one answer after the other, and then repeats the last one. It counts the requests.
func answers(count *int, all ...func() (*http.Response, error)) http.RoundTripper {
	return kit.RoundTripper(func(*http.Request) (*http.Response, error) {
		*count++
		return all[min(*count, len(all))-1]()
	})
}

func status(code int, body string) func() (*http.Response, error) {
	return func() (*http.Response, error) {
		return &http.Response{StatusCode: code, Status: http.StatusText(code), Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

func fails(err error) func() (*http.Response, error) {
	return func() (*http.Response, error) { return nil, err }
}

func TestStartupRetry(t *testing.T) {
	reset, ok := errors.New("connection reset by peer"), status(http.StatusOK, "all")
	brokenOff := func() (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(iotest.ErrReader(reset))}, nil
	}
	unavailable := status(http.StatusServiceUnavailable, "later")
	for name, test := range map[string]struct {
		method, query string
		answers       []func() (*http.Response, error)
		over          bool
		// count is the expected number of requests. outcome is the final answer or error.
		count   int
		outcome string
	}{
		"at once":               {answers: []func() (*http.Response, error){ok}, count: 1, outcome: "200 all"},
		"reset":                 {answers: []func() (*http.Response, error){fails(reset), fails(reset), ok}, count: 3, outcome: "200 all"},
		"unavailable":           {answers: []func() (*http.Response, error){unavailable, ok}, count: 2, outcome: "200 all"},
		"throttled":             {answers: []func() (*http.Response, error){status(http.StatusTooManyRequests, ""), ok}, count: 2, outcome: "200 all"},
		"broken off":            {answers: []func() (*http.Response, error){brokenOff, ok}, count: 2, outcome: "200 all"},
		"not found":             {answers: []func() (*http.Response, error){status(http.StatusNotFound, "no"), ok}, count: 1, outcome: "404 no"},
		"a write":               {method: http.MethodPost, answers: []func() (*http.Response, error){unavailable, ok}, count: 1, outcome: "503 later"},
		"a watch":               {query: "watch=true", answers: []func() (*http.Response, error){unavailable, ok}, count: 1, outcome: "503 later"},
		"it was started before": {over: true, answers: []func() (*http.Response, error){fails(reset), ok}, count: 1, outcome: reset.Error()},
		"never":                 {answers: []func() (*http.Response, error){fails(reset)}, count: 11, outcome: reset.Error()},
		"redirected": {
			answers: []func() (*http.Response, error){fails(fmt.Errorf("%w (301)", restclient.ErrRedirected)), ok}, count: 1, outcome: restclient.ErrRedirected.Error() + " (301)",
		},
		"nobody we know": {
			answers: []func() (*http.Response, error){fails(&tls.CertificateVerificationError{Err: reset}), ok}, count: 1,
			outcome: "tls: failed to verify certificate: " + reset.Error(),
		},
	} {
		t.Run(name, func(t *testing.T) {
			clk := hastyClock{clocktesting.NewFakeClock(time.Now())}
			begun := clk.Now()
			p := newStartupRetry(clk, logr.Discard())
			if test.over {
				p.end()
			}
			count := 0
			request, err := http.NewRequestWithContext(t.Context(), test.method, "https://example.com/apis?"+test.query, nil)
			kit.Must(t, err)
			response, err := p.wrap(answers(&count, test.answers...)).RoundTrip(request)
			outcome := fmt.Sprint(err)
			if err == nil {
				outcome = fmt.Sprintf("%d %s", response.StatusCode, kit.ReadAll(t, response.Body))
			}
			if count != test.count || outcome != test.outcome {
				t.Errorf("%d requests with the outcome %s, want %d with %s", count, outcome, test.count, test.outcome)
			}
			if took := clk.Since(begun); took > startupRetryLimit {
				t.Errorf("took %s", took)
			}
		})
	}
}
