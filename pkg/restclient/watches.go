package restclient

import (
	"net/http"
	"strings"
)

// plainWatches requests watches without compression. kube-apiserver would compress each event separately, which costs
// more than it saves. Lists are still compressed.
type plainWatches struct{ next http.RoundTripper }

// RoundTrip sends the request.
func (p plainWatches) RoundTrip(request *http.Request) (*http.Response, error) {
	if strings.Contains(request.URL.RawQuery, "watch=") {
		request = request.Clone(request.Context())
		request.Header.Set("Accept-Encoding", "identity") // Go's HTTP client does not override it
	}
	return p.next.RoundTrip(request)
}
