package ui

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/trellis-k8s/trellis/pkg/cli"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/ui"
	"github.com/trellis-k8s/trellis/test/kit"
)

// serveThrough serves the page of a namespace to whoever asks, through a handler that sees every request and answer.
func (w *world) serveThrough(t *testing.T, namespace string, through func(http.Handler) http.Handler) *site {
	t.Helper()
	c := console.New(genericiooptions.NewTestIOStreamsDiscard(), "v0.0.0-test")
	kit.Must(t, cli.NewCommand(c, "kubectl mr").PersistentFlags().Set("kubeconfig", w.kubeconfig))
	server, err := ui.New(ui.Options{Console: c, Namespace: namespace, Scope: "a test"})
	kit.Must(t, err)
	go server.Run(t.Context())
	served := httptest.NewServer(through(server.Handler()))
	t.Cleanup(func() {
		served.CloseClientConnections()
		served.Close()
	})
	return &site{base: served.URL, written: &kit.Output{}}
}

// between starts a server between the page and the API server that does something before it passes a request on, and returns its
// address.
func (w *world) between(t *testing.T, before func(*http.Request)) string {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", w.kubeconfig)
	kit.Must(t, err)
	transport, err := rest.TransportFor(config)
	kit.Must(t, err)
	target, err := url.Parse(config.Host)
	kit.Must(t, err)
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: transport, FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }, // whoever asked gave up
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		before(r)
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}
