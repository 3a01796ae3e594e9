package kit

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/util/cert"
)

// Webhooks serves webhooks over HTTPS locally.
type Webhooks struct {
	// URL is the URL of the server, without a path.
	URL string
	// CABundle is the CA bundle for clients, in PEM.
	CABundle []byte
}

// ServeWebhooks serves handlers by path until the test ends.
func ServeWebhooks(tb testing.TB, handlers map[string]http.Handler) *Webhooks {
	tb.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	Must(tb, err)
	pair, err := tls.X509KeyPair(certificate, key)
	Must(tb, err)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
	Must(tb, err)
	mux := http.NewServeMux()
	for path, handler := range handlers {
		mux.Handle(path, handler)
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // returns an error when it is closed
	}()
	tb.Cleanup(func() {
		Must(tb, server.Close())
		<-served
	})
	return &Webhooks{URL: fmt.Sprintf("https://%s", listener.Addr()), CABundle: certificate}
}

// ClientConfig returns the address of the webhook of a path for an API server.
func (w *Webhooks) ClientConfig(path string) admissionregistrationv1.WebhookClientConfig {
	url := w.URL + path
	return admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: w.CABundle}
}
