package restclient

import (
	"errors"
	"fmt"
	"net/http"
)

// ErrRedirected reports that an API server responded with a redirect.
var ErrRedirected = errors.New("the API server responded with a redirect")

// noRedirects rejects redirects. API servers do not send any. A compromised API server must not make a controller send
// requests, possibly with Secrets, to other servers that only the controller can reach.
type noRedirects struct{ next http.RoundTripper }

// RoundTrip sends the request. It returns ErrRedirected if the response is a redirect.
func (n noRedirects) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := n.next.RoundTrip(request)
	if err != nil || response.StatusCode < 300 || response.StatusCode > 399 || response.Header.Get("Location") == "" {
		return response, err
	}
	_ = response.Body.Close()
	return nil, fmt.Errorf("%w (%d), which is not followed", ErrRedirected, response.StatusCode)
}
