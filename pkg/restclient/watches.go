package restclient

import (
	"net/http"
	"strings"
)

// plainWatches asks for watches that are not compressed: kube-apiserver would compress each event by itself, which costs it more
// than it saves. Lists stay compressed.
type plainWatches struct{ next http.RoundTripper }

// RoundTrip sends the request.
func (p plainWatches) RoundTrip(request *http.Request) (*http.Response, error) {
	if strings.Contains(request.URL.RawQuery, "watch=") {
		request = request.Clone(request.Context())
		request.Header.Set("Accept-Encoding", "identity") // Go's own client leaves alone what is set
	}
	return p.next.RoundTrip(request)
}
