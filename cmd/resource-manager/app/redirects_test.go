package app

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"

	configv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/config/v1alpha1"
)

// TestRedirectsAreNotFollowed checks that a compromised target API server cannot redirect requests to servers that only the
// resource-manager can reach.
func TestRedirectsAreNotFollowed(t *testing.T) {
	var reached atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer elsewhere.Close()
	status := http.StatusTemporaryRedirect
	server := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		if request.URL.Path != "/unchanged" {
			http.Redirect(writer, request, elsewhere.URL+"/stolen", status)
			return
		}
		writer.WriteHeader(http.StatusNotModified)
	}))
	defer server.Close()

	connection := configv1alpha1.ClientConnection{}
	connection.Kubeconfig = writeFile(t, strings.Replace(kubeconfigWith("token: t"), "https://shoot.example.com", server.URL, 1))
	config, err := restConfig(&connection)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	send := func(method, path string) (*http.Response, error) {
		request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, io.NopCloser(strings.NewReader("secret")))
		if err != nil {
			t.Fatal(err)
		}
		request.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("secret")), nil }
		return client.Do(request)
	}
	for _, status = range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		for _, method := range []string{http.MethodGet, http.MethodPatch, http.MethodDelete} {
			response, err := send(method, "/api")
			if err == nil {
				_ = response.Body.Close()
			}
			expectError(t, err, "redirect", "not followed")
		}
	}
	if reached.Load() > 0 {
		t.Errorf("another server was reached %d times", reached.Load())
	}
	response, err := send(http.MethodGet, "/unchanged")
	if err != nil {
		t.Fatal(err)
	}
	if _ = response.Body.Close(); response.StatusCode != http.StatusNotModified {
		t.Errorf("the status is %d", response.StatusCode)
	}
}
