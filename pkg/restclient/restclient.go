// Package restclient configures connections to API servers for all controllers.
package restclient

import (
	"net/http"

	"k8s.io/client-go/rest"
)

// Tune makes a connection reject redirects, watch without compression, and log deprecation warnings of API servers.
func Tune(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return noRedirects{plainWatches{next}} })
	config.WarningHandlerWithContext = &warnings{logged: map[string]bool{}}
}

// NoRedirects returns a transport that rejects redirects with ErrRedirected.
func NoRedirects(next http.RoundTripper) http.RoundTripper { return noRedirects{next} }
