package trouble

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/trellis-k8s/trellis/test/kit"
)

// etcd calls etcd through its HTTP gateway.
type etcd struct {
	testing.TB
	address *url.URL
}

// call calls a method and decodes its response.
func (e etcd) call(method string, request map[string]any, answer any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(e.Context(), time.Minute)
	defer cancel()
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, e.address.JoinPath(method).String(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(post)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", method, response.Status, content)
	}
	return json.Unmarshal(content, answer)
}

// compact removes all revisions except the current one from etcd.
func (e etcd) compact() {
	e.Helper()
	var status struct {
		Header struct {
			Revision string `json:"revision"`
		} `json:"header"`
	}
	kit.Must(e, e.call("/v3/maintenance/status", map[string]any{}, &status))
	err := e.call("/v3/kv/compaction", map[string]any{"revision": status.Header.Revision, "physical": true}, &struct{}{})
	if err != nil && !strings.Contains(err.Error(), "has been compacted") { // nothing left to compact
		e.Fatal(err)
	}
}

// alarms returns the active alarms.
func (e etcd) alarms() []map[string]any {
	e.Helper()
	var answer struct {
		Alarms []map[string]any `json:"alarms"`
	}
	kit.Must(e, e.call("/v3/maintenance/alarm", map[string]any{"action": "GET"}, &answer))
	return answer.Alarms
}

// makeRoom releases the space of deleted objects and disarms the alarms, so that etcd accepts writes again.
func (e etcd) makeRoom() {
	e.Helper()
	e.compact()
	kit.Must(e, e.call("/v3/maintenance/defragment", map[string]any{}, &struct{}{}))
	for _, alarm := range e.alarms() {
		alarm["action"] = "DEACTIVATE"
		kit.Must(e, e.call("/v3/maintenance/alarm", alarm, &struct{}{}))
	}
}

// laggingEtcd is a proxy in front of etcd. Watches lag behind while its gate is shut. All other requests are
// answered at once.
type laggingEtcd struct {
	*url.URL
	gate gate
	// cut closes all connections of etcd's clients.
	cut func()
}

// newLaggingEtcd starts a proxy that stops with the test.
func newLaggingEtcd(tb testing.TB, etcd *url.URL) *laggingEtcd {
	tb.Helper()
	lagging := &laggingEtcd{}
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols}
	server := httptest.NewUnstartedServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(etcd)
			r.Out.Header.Set("Te", "trailers") // gRPC requires this hop-by-hop header, which the proxy removes
		},
		Transport: kit.RoundTripper(func(r *http.Request) (*http.Response, error) {
			response, err := transport.RoundTrip(r)
			if err == nil && r.URL.Path == "/etcdserverpb.Watch/Watch" {
				response.Body = pass(r.Context(), response.Body, splitAnywhere, stream{gate: &lagging.gate})
			}
			return response, err
		}),
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
	})
	server.Config.Protocols = protocols
	server.Start()
	address, err := url.Parse(server.URL)
	kit.Must(tb, err)
	lagging.URL, lagging.cut = address, server.CloseClientConnections
	tb.Cleanup(func() {
		lagging.gate.open()
		server.CloseClientConnections()
	})
	return lagging
}
