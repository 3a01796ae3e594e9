package registration

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/test/kit"
)

// shown returns the serial number of the certificate that the server presents. It is nil if the server presents no trusted certificate.
func (f *fixture) shown() *big.Int {
	f.Helper()
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(f.process.Authority.Bundle())
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}}
	connection, err := dialer.DialContext(f.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", f.process.WebhookPort))
	if err != nil {
		return nil
	}
	defer connection.Close()
	encrypted, is := connection.(*tls.Conn)
	if !is {
		f.Fatalf("got a connection of type %T", connection)
	}
	return encrypted.ConnectionState().PeerCertificates[0].SerialNumber
}

// TestCertificateIsReplaced checks that a new certificate is served without a restart, and that no request fails during the replacement.
// An expired certificate is logged, and the next valid one is served again.
func TestCertificateIsReplaced(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	namespace := f.namespace(nil)
	ctx, cancel := context.WithCancel(t.Context())
	var requests atomic.Int64
	var load sync.WaitGroup
	for worker := range 4 {
		load.Go(func() {
			for ctx.Err() == nil {
				if err := f.client.Create(ctx, deployment(namespace, fmt.Sprintf("load-%d", worker), 2), client.DryRunAll); err != nil && ctx.Err() == nil {
					t.Errorf("a request failed: %v", err)
					return
				}
				requests.Add(1)
			}
		})
	}
	for range 3 {
		serial := f.process.Authority.Issue(t, f.process.Certificates, time.Now().Add(time.Hour))
		kit.EventuallyTrue(t, "the new certificate is served", func() bool { shown := f.shown(); return shown != nil && shown.Cmp(serial) == 0 })
		before := requests.Load()
		kit.EventuallyTrue(t, "requests are still answered", func() bool { return requests.Load() > before+20 })
	}
	cancel()
	load.Wait()
	t.Logf("%d requests while the certificate was replaced three times", requests.Load())

	f.process.Authority.Issue(t, f.process.Certificates, time.Now().Add(-time.Minute))
	kit.EventuallyTrue(t, "the expired certificate is logged", func() bool {
		return strings.Contains(f.process.Written.String(), "The webhook serving certificate has expired")
	})
	f.process.Authority.Issue(t, f.process.Certificates, time.Now().Add(time.Hour))
	kit.EventuallyTrue(t, "requests are answered again", func() bool {
		return f.client.Create(t.Context(), deployment(namespace, "after", 2), client.DryRunAll) == nil
	})
}

// TestServer checks the metrics, and the server's answers to requests that do not come from an API server.
func TestServer(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	namespace := f.namespace(nil)
	kit.Must(t, f.client.Create(t.Context(), deployment(namespace, "app", 2)))
	_, metrics := f.process.Get(f.process.Metrics, "/metrics")
	for _, want := range []string{
		`resource_manager_webhook_decisions_total{decision="patched",webhook="high-availability-config"} `,
		`resource_manager_webhook_decisions_total{decision="denied",webhook="high-availability-config"} 0`,
		`controller_runtime_webhook_latency_seconds_count{webhook="/webhooks/high-availability-config"} `,
		`controller_runtime_webhook_panics_total 0`, `resource_manager_webhook_certificate_expiry_timestamp_seconds 1.`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics do not contain %s", want)
		}
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(f.process.Authority.Bundle())
	caller := &http.Client{Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}}}
	url := fmt.Sprintf("https://127.0.0.1:%d/webhooks/", f.process.WebhookPort)
	for name, test := range map[string]struct {
		path, contentType, body string
		status                  int
		want                    string
	}{
		"another path":     {"other", "application/json", "{}", http.StatusNotFound, "404"},
		"no body":          {"high-availability-config", "application/json", "", http.StatusOK, `"allowed":false,"status":{"metadata":{},"message":"request body is empty","code":400}`},
		"another type":     {"high-availability-config", "text/plain", "{}", http.StatusOK, `"code":400`},
		"no JSON":          {"high-availability-config", "application/json", "{", http.StatusOK, `"code":400`},
		"another kind":     {"high-availability-config", "application/json", `{"kind":"Pod","apiVersion":"v1"}`, http.StatusOK, `"code":400`},
		"too large a body": {"high-availability-config", "application/json", strings.Repeat(" ", 8<<20), http.StatusOK, `"code":413`},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+test.path, strings.NewReader(test.body))
		kit.Must(t, err)
		request.Header.Set("Content-Type", test.contentType)
		response, err := caller.Do(request)
		kit.Must(t, err)
		body := kit.ReadAll(t, response.Body)
		if response.StatusCode != test.status || !strings.Contains(body, test.want) {
			t.Errorf("%s: %d %s", name, response.StatusCode, body)
		}
	}
}
