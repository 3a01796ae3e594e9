package trouble

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/trellis-k8s/trellis/test/kit"
)

// proxy forwards requests from a resource-manager to API servers, as an administrator. It records the requests,
// can send reads and writes to different API servers, and injects the disturbances of a test.
type proxy struct {
	server *httptest.Server
	kit.Requests

	mu sync.Mutex
	// reads and writes are the hosts that requests go to.
	reads, writes string
	// tamper wraps the API server. It may be nil.
	tamper func(http.Handler) http.Handler
	// streams returns the disturbance of a watch. It may be nil.
	streams func(request *http.Request) stream
	// cut ends all watches.
	cut    context.CancelFunc
	unless context.Context //nolint:containedctx // of the watches until the next cut
}

// newProxy starts a proxy to an API server. It stops with the test.
func newProxy(tb testing.TB, config *rest.Config) *proxy {
	tb.Helper()
	address, _, err := rest.DefaultServerUrlFor(config)
	kit.Must(tb, err)
	transport, err := rest.TransportFor(config)
	kit.Must(tb, err)
	p := &proxy{reads: address.Host, writes: address.Host}
	p.cutWatches()
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "https", Host: p.host(r.In)})
			if isWatch(r.In) {
				r.Out.Header.Set("Accept-Encoding", "identity")
			}
		},
		Transport:     p.Wrap(kit.RoundTripper(func(r *http.Request) (*http.Response, error) { return p.send(transport, r) })),
		FlushInterval: -1, // pass on events of watches at once
		ErrorLog:      log.New(io.Discard, "", 0),
	}
	p.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.handler(forward).ServeHTTP(w, r)
	}))
	p.server.EnableHTTP2 = true
	p.server.Config.ErrorLog = forward.ErrorLog
	p.server.StartTLS()
	tb.Cleanup(func() {
		p.cutWatches()
		p.server.CloseClientConnections()
		p.server.Close()
	})
	return p
}

// host returns the destination of a request.
func (p *proxy) host(r *http.Request) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.Method == http.MethodGet {
		return p.reads
	}
	return p.writes
}

// readFrom sends all further reads to another API server of the same control plane.
func (p *proxy) readFrom(config *rest.Config) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reads = strings.TrimPrefix(config.Host, "https://")
}

func (p *proxy) handler(forward http.Handler) http.Handler {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tamper != nil {
		return p.tamper(forward)
	}
	return forward
}

// breakWith makes tamper answer all further requests. A nil tamper ends this.
func (p *proxy) breakWith(tamper func(http.Handler) http.Handler) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tamper = tamper
}

// disturb passes the events of further watches through a stream. A nil argument ends this.
func (p *proxy) disturb(streams func(request *http.Request) stream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.streams = streams
}

// cutWatches ends all watches.
func (p *proxy) cutWatches() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut != nil {
		p.cut()
	}
	p.unless, p.cut = context.WithCancel(context.Background())
}

// send forwards a request. The events of a watch pass through a stream.
func (p *proxy) send(transport http.RoundTripper, r *http.Request) (*http.Response, error) {
	if !isWatch(r) {
		return transport.RoundTrip(r)
	}
	p.mu.Lock()
	streams, unless := p.streams, p.unless
	p.mu.Unlock()
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(unless, cancel)
	response, err := transport.RoundTrip(r.WithContext(ctx))
	if err != nil {
		stop()
		cancel()
		return nil, err
	}
	end := func() { stop(); cancel() }
	if response.StatusCode != http.StatusOK || streams == nil {
		response.Body = &closing{response.Body, end}
		return response, nil
	}
	response.Body = &closing{pass(ctx, response.Body, splitterOf(response.Header), streams(r)), end}
	return response, nil
}

// closing calls a further function when it is closed.
type closing struct {
	io.ReadCloser
	end func()
}

func (c *closing) Close() error {
	c.end()
	return c.ReadCloser.Close()
}

// config returns a client configuration for the proxy.
func (p *proxy) config() *rest.Config {
	authority := &bytes.Buffer{}
	_ = pem.Encode(authority, &pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw}) // a write to a buffer does not fail
	return &rest.Config{Host: p.server.URL, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: authority.Bytes()}}
}

// kubeconfig returns the kubeconfig of a client configuration.
func kubeconfig(config *rest.Config) clientcmdapi.Config {
	result := clientcmdapi.NewConfig()
	server := config.Host
	if !strings.Contains(server, "://") {
		server = "https://" + server
	}
	result.Clusters["test"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: config.CAData}
	result.AuthInfos["test"] = &clientcmdapi.AuthInfo{
		Token: config.BearerToken, TokenFile: config.BearerTokenFile, ClientCertificateData: config.CertData, ClientKeyData: config.KeyData,
	}
	result.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	result.CurrentContext = "test"
	return *result
}

func writeFile(path string, content []byte) error { return os.WriteFile(path, content, 0o600) }

func isWatch(r *http.Request) bool {
	watch, _ := strconv.ParseBool(r.URL.Query().Get("watch"))
	return watch
}

// resourceOf returns the resource in the path of a request, without the part of the path before it.
func resourceOf(r *http.Request) string {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	for i, part := range parts {
		if part == "namespaces" && len(parts) > i+2 {
			return parts[i+2]
		}
	}
	if len(parts) > 2 && parts[0] == "api" {
		return parts[2]
	}
	if len(parts) > 3 && parts[0] == "apis" {
		return parts[3]
	}
	return ""
}

// writesOf returns the write requests, except those for leases and Events.
func writesOf(requests []kit.Request) []string {
	var writes []string
	for _, request := range requests {
		if request.Method != http.MethodGet && !strings.Contains(request.Path, "/leases") && !strings.Contains(request.Path, "/events") {
			writes = append(writes, fmt.Sprint(request))
		}
	}
	return writes
}
