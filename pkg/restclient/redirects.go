package restclient

import (
	"errors"
	"fmt"
	"net/http"
)

// ErrRedirected reports that an API server answered with a redirect.
var ErrRedirected = errors.New("the API server responded with a redirect")

// noRedirects refuses to be sent elsewhere. API servers do not do that, and one that is in the wrong hands must not have a
// controller send requests, with Secrets in them, to other servers that only it can reach.
type noRedirects struct{ next http.RoundTripper }

// RoundTrip sends the request. The error says that the answer is a redirect.
func (n noRedirects) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := n.next.RoundTrip(request)
	if err != nil || response.StatusCode < 300 || response.StatusCode > 399 || response.Header.Get("Location") == "" {
		return response, err
	}
	_ = response.Body.Close()
	return nil, fmt.Errorf("%w (%d), which is not followed", ErrRedirected, response.StatusCode)
}
