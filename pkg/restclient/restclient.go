// Package restclient sets up connections to API servers as all controllers need them.
package restclient

import (
	"net/http"

	"k8s.io/client-go/rest"
)

// Tune makes a connection refuse redirects, watch without compression, and log what API servers say is deprecated.
func Tune(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return noRedirects{plainWatches{next}} })
	config.WarningHandlerWithContext = &warnings{told: map[string]bool{}}
}

// NoRedirects returns a transport that refuses redirects with ErrRedirected.
func NoRedirects(next http.RoundTripper) http.RoundTripper { return noRedirects{next} }
