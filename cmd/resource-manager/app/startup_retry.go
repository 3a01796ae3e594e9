package app

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"github.com/trellis-k8s/trellis/pkg/restclient"
)

// startupRetryLimit is how long API servers may be unreachable during the setup of a resource-manager. It is shorter than
// the liveness probe allows.
const startupRetryLimit = 30 * time.Second

// startupRetry retries failed read requests during the setup of a resource-manager. Without it, one failure would end the
// process, which Kubernetes restarts with increasing delays. Running controllers do not need it, because they continue
// with other objects.
type startupRetry struct {
	clock    clock.Clock
	log      logr.Logger
	deadline time.Time
	over     atomic.Bool
}

func newStartupRetry(clk clock.Clock, log logr.Logger) *startupRetry {
	return &startupRetry{clock: clk, log: log, deadline: clk.Now().Add(startupRetryLimit)}
}

// end disables the retries of further requests.
func (p *startupRetry) end() { p.over.Store(true) }

// wrap adds the retries to a transport.
func (p *startupRetry) wrap(next http.RoundTripper) http.RoundTripper {
	return retryingTransport{p, next}
}

type retryingTransport struct {
	*startupRetry
	next http.RoundTripper
}

// RoundTrip sends the request, retries it if that can help, and returns the last outcome.
func (p retryingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet || request.URL.Query().Has("watch") {
		return p.next.RoundTrip(request)
	}
	delays := wait.Backoff{Duration: 250 * time.Millisecond, Factor: 2, Steps: 4} // then every four seconds
	for !p.over.Load() {
		response, err := p.once(request)
		delay := delays.Step()
		if !isTransient(response, err) || p.clock.Now().Add(delay).After(p.deadline) {
			return response, err
		}
		p.log.Info("Waiting for the API server", "url", request.URL.Redacted(), "outcome", outcome(response, err))
		select {
		case <-p.clock.After(delay):
		case <-request.Context().Done():
			return response, err
		}
	}
	return p.next.RoundTrip(request)
}

// once sends the request and reads the whole response, which might break off.
func (p retryingTransport) once(request *http.Request) (*http.Response, error) {
	response, err := p.next.RoundTrip(request.Clone(request.Context()))
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}

// isTransient reports whether a retry of a request might soon succeed.
func isTransient(response *http.Response, err error) bool {
	if err == nil {
		return response.StatusCode >= http.StatusInternalServerError || response.StatusCode == http.StatusTooManyRequests
	}
	var certificate *tls.CertificateVerificationError
	return !errors.As(err, &certificate) && !errors.Is(err, restclient.ErrRedirected)
}

func outcome(response *http.Response, err error) string {
	if err != nil {
		return err.Error()
	}
	return response.Status
}
