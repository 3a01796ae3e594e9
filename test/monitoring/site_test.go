package monitoring

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
)

// trouble returns the delay of a request, and the status with which it is refused. The status is 0 if it is not
// refused.
type trouble func(r *http.Request) (delay time.Duration, status int)

// site is a namespace with its own resource-manager. Its requests may be disturbed.
type site struct {
	load
	mu      sync.Mutex
	trouble trouble
}

// newSite starts a resource-manager with additional configuration.
func newSite(t *testing.T, cp *controlplane.ControlPlane, c client.Client, prefix, extra string, is trouble) *site {
	t.Helper()
	s := &site{trouble: is}
	s.load = load{T: t, client: c, namespace: kit.NewNamespace(t, c, prefix, nil)}
	s.process = kit.StartManager(t, s.kubeconfig(cp.Config()), []string{s.namespace}, extra)
	return s
}

// has sets the trouble. Nil removes it.
func (s *site) has(is trouble) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trouble = is
}

// kubeconfig starts a proxy to an API server that acts as an administrator, and returns a kubeconfig for it.
func (s *site) kubeconfig(config *rest.Config) []byte {
	s.Helper()
	transport, err := rest.TransportFor(config)
	kit.Must(s, err)
	address, err := url.Parse(config.Host)
	kit.Must(s, err)
	if address.Host == "" {
		address = &url.URL{Scheme: "https", Host: config.Host}
	}
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(address) }, Transport: transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		is := s.trouble
		s.mu.Unlock()
		if is != nil {
			delay, status := is(r)
			<-time.After(delay)
			if status != 0 {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(status)
				_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"refused by the test","code":`+
					strconv.Itoa(status)+`,"reason":"`+strings.ReplaceAll(http.StatusText(status), " ", "")+`"}`)
				return
			}
		}
		forward.ServeHTTP(w, r)
	}))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = forward.ErrorLog
	server.StartTLS()
	s.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	result := clientcmdapi.NewConfig()
	result.Clusters["test"] = &clientcmdapi.Cluster{
		Server: server.URL, CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}
	result.AuthInfos["test"] = &clientcmdapi.AuthInfo{}
	result.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	result.CurrentContext = "test"
	content, err := clientcmd.Write(*result)
	kit.Must(s, err)
	return content
}

// asks reports whether a request has the method, and its path ends in, or contains, a part.
func asks(r *http.Request, method, part string) bool {
	return r.Method == method && strings.Contains(r.URL.Path, part)
}
