package ui

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/trellis-k8s/trellis/pkg/cli"
	"github.com/trellis-k8s/trellis/pkg/cli/kubectl"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
	"github.com/trellis-k8s/trellis/pkg/ui"
	"github.com/trellis-k8s/trellis/test/kit"
)

// serveThrough serves the page of a namespace without a login, through a handler that sees every request and answer.
func (w *world) serveThrough(t *testing.T, namespace string, through func(http.Handler) http.Handler) *site {
	t.Helper()
	c := kubectl.NewConsole(genericiooptions.NewTestIOStreamsDiscard(), "v0.0.0-test")
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

// between starts a server between the page and the API server and returns its address. It forwards the requests that it does not answer
// itself.
func (w *world) between(t *testing.T, answers func(http.ResponseWriter, *http.Request) bool) string {
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
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }, // the client gave up
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !answers(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

// TestKnownVersion checks that a ManagedResource is read at the known version or later, which the API server has in memory. If another
// API server does not have that version yet, the ManagedResource is read without a version.
func TestKnownVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	namespace := w.namespace(t)
	mr := w.deliver(t, namespace, "shop", state.Ready, shop)
	var asked atomic.Value
	var behind atomic.Bool
	address := w.between(t, func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/managedresources/shop") {
			return false
		}
		version := r.URL.Query().Get("resourceVersion")
		asked.Store(version)
		if version == "" || !behind.Load() {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusGatewayTimeout)
		_ = json.NewEncoder(w).Encode(apierrors.NewTimeoutError("Too large resource version", 1).Status())
		return true
	})
	s := w.serve(t, "-n", namespace, "--server", address)
	until(t, s.follow(t, ""), func(told news) bool { return len(told.Rows) == 1 })
	for _, want := range []string{mr.ResourceVersion, ""} {
		if status, _, body := s.get(t, resourcePath(namespace, "shop", "summary")); status != http.StatusOK || asked.Load() != want {
			t.Errorf("the requested version is %q, want %q: %d %s", asked.Load(), want, status, body)
		}
		behind.Store(true)
	}
	var known struct {
		Nodes []struct{ Level, Kind, Name, Health any }
	}
	_, _, body := s.get(t, resourcePath(namespace, "shop", "inventory"))
	kit.Must(t, json.Unmarshal([]byte(body), &known))
	if text := fmt.Sprint(known.Nodes); text != "[{1 ConfigMap settings <nil>} {1 Secret password <nil>}]" {
		t.Errorf("the known part of the tree: %s", text)
	}
}
