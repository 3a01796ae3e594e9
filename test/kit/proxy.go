package kit

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
)

// Proxy serves an API server locally, without credentials, until the test ends. Each request passes through a function,
// which may forward it. Proxy returns the path of a kubeconfig, and a function that closes all connections of clients.
func Proxy(
	tb testing.TB, config *rest.Config, send func(next http.RoundTripper, request *http.Request) (*http.Response, error),
) (kubeconfig string, disconnect func()) {
	tb.Helper()
	transport, err := rest.TransportFor(config)
	Must(tb, err)
	target, err := url.Parse(config.Host)
	Must(tb, err)
	server := httptest.NewServer(&httputil.ReverseProxy{
		FlushInterval: -1, Transport: RoundTripper(func(request *http.Request) (*http.Response, error) { return send(transport, request) }),
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ErrorHandler: func(writer http.ResponseWriter, _ *http.Request, _ error) { writer.WriteHeader(http.StatusBadGateway) },
	})
	tb.Cleanup(server.Close)
	kubeconfig = filepath.Join(tb.TempDir(), "kubeconfig")
	Must(tb, os.WriteFile(kubeconfig, fmt.Appendf(nil, `{"apiVersion": "v1", "kind": "Config", "current-context": "x",
		"contexts": [{"name": "x", "context": {"cluster": "x"}}], "clusters": [{"name": "x", "cluster": {"server": %q}}]}`, server.URL), 0o600))
	return kubeconfig, server.CloseClientConnections
}
