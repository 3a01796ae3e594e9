package restclient

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestWatchesAreNotCompressed(t *testing.T) {
	accepted := map[string]string{}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		accepted[request.URL.RawQuery] = request.Header.Get("Accept-Encoding")
	}))
	defer server.Close()
	client := &http.Client{Transport: plainWatches{http.DefaultTransport}}
	for _, query := range []string{"limit=500", "allowWatchBookmarks=true&watch=true"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/api/v1/pods?"+query, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
	}
	if accepted["limit=500"] != "gzip" || accepted["allowWatchBookmarks=true&watch=true"] != "identity" {
		t.Errorf("accepted encodings: %v", accepted)
	}
}
