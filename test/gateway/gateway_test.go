package gateway

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/trellis-k8s/trellis/pkg/component/apiserverexposure"
	"github.com/trellis-k8s/trellis/pkg/gateway/forward"
	"github.com/trellis-k8s/trellis/pkg/gateway/nodeproxy"
	"github.com/trellis-k8s/trellis/test/kit"
)

// TestGateway checks that two shoots share an address: each host leads to its own API server, whatever a client sends; one does not notice that an
// endpoint of the other fails, and no request fails while the replicas of the gateway are replaced.
func TestGateway(t *testing.T) {
	w := newWorld(t)
	w.startAll(2)
	for _, s := range w.shoots {
		kit.Eventually(t, s.host+" leads to its API server", func() string { return w.asks(w.access(s, s), s) })
	}
	t.Run("Status", w.testStatus)
	t.Run("Isolation", w.testIsolation)
	t.Run("Ingress", w.testIngress)
	t.Run("Unknown", w.testUnknown)
	t.Run("Connect", w.testConnect)
	t.Run("NodeProxy", w.testNodeProxy)
	t.Run("Endpoint", w.testEndpoint)
	t.Run("Restart", w.testRestart)
}

// asks requests the identity of a cluster, and returns why the answer is not that of a shoot.
func (w *world) asks(config *rest.Config, want *shoot) string {
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err.Error()
	}
	return w.asksBy(clients, want)
}

// asksBy does so with a client, which keeps its connection.
func (w *world) asksBy(clients kubernetes.Interface, want *shoot) string {
	own, err := clients.CoreV1().Namespaces().Get(w.Context(), "kube-system", metav1.GetOptions{})
	switch {
	case err != nil:
		return err.Error()
	case own.UID != want.uid:
		return "another API server answers"
	}
	return ""
}

func (w *world) testStatus(t *testing.T) {
	kit.Eventually(t, "the status says that all is served", func() string {
		one, route := &gatewayv1.Gateway{}, &gatewayv1.TLSRoute{}
		if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: apiserverexposure.GatewayName}, one); err != nil {
			return err.Error()
		}
		if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: w.shoots[1].namespace, Name: "kube-apiserver"}, route); err != nil {
			return err.Error()
		}
		switch {
		case !meta.IsStatusConditionTrue(one.Status.Conditions, "Programmed") || len(one.Status.Addresses) != 1 || one.Status.Addresses[0].Value != balanced:
			return fmt.Sprintf("the Gateway has the status %+v", one.Status)
		case one.Status.Listeners[0].AttachedRoutes != 2:
			return fmt.Sprintf("%d routes are attached", one.Status.Listeners[0].AttachedRoutes)
		case len(route.Status.Parents) != 1 || !meta.IsStatusConditionTrue(route.Status.Parents[0].Conditions, "Accepted"):
			return fmt.Sprintf("the TLSRoute has the status %+v", route.Status)
		}
		return ""
	})
}

// testIsolation checks what a client of the first shoot gets at the host of the second one.
func (w *world) testIsolation(t *testing.T) {
	one, two := w.shoots[0], w.shoots[1]
	token := &authenticationv1.TokenRequest{}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: serviceName}}
	kit.Must(t, w.client.SubResource("token").Create(t.Context(), account, token))
	with := func(change func(*rest.Config)) *rest.Config {
		config := w.access(two, two)
		config.CertData, config.KeyData = nil, nil
		change(config)
		return config
	}
	for name, test := range map[string]struct {
		config *rest.Config
		want   string
	}{
		"its client certificate": {w.access(two, one), "Unauthorized"},
		"its token":              {with(func(c *rest.Config) { c.BearerToken = token.Status.Token }), "Unauthorized"},
		"headers of a front proxy": {with(func(c *rest.Config) {
			c.Wrap(kit.WithHeaders(map[string]string{"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}))
		}), `User "system:anonymous"`},
		"a certificate and headers": {withHeaders(w.access(two, one), kit.WithHeaders(map[string]string{"X-Remote-User": "admin", "X-Remote-Group": "system:masters"})), "Unauthorized"},
		"the destination of the other shoot": {with(func(c *rest.Config) {
			c.Wrap(kit.WithHeaders(map[string]string{"X-Gardener-Destination": "outbound|443||kube-apiserver." + one.namespace + ".svc.cluster.local"}))
		}), `User "system:anonymous"`},
		"a server name that is not the host's": {with(func(c *rest.Config) { c.ServerName, c.CAData = two.host, one.authority.PEM }), "x509"},
	} {
		if why := w.asks(test.config, two); !strings.Contains(why, test.want) {
			t.Errorf("%s: got %q, want %q", name, why, test.want)
		}
	}
	if why := w.asks(w.access(two, two), two); why != "" {
		t.Errorf("an administrator of the shoot: %s", why)
	}
}

// once makes a connection for each request.
func once(config *rest.Config) *rest.Config {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return kit.RoundTripper(func(request *http.Request) (*http.Response, error) {
			request = request.Clone(request.Context())
			request.Close = true
			return next.RoundTrip(request)
		})
	})
	return config
}

func withHeaders(config *rest.Config, wrap func(http.RoundTripper) http.RoundTripper) *rest.Config {
	config.Wrap(wrap)
	return config
}

// testUnknown checks that connections are closed without an answer if they name no host of a shoot.
func (w *world) testUnknown(t *testing.T) {
	for _, name := range []string{"api.three.dev.internal.example.org", "kube-apiserver." + w.shoots[0].namespace + ".svc.cluster.local", "localhost", ""} {
		conn, err := net.Dial("tcp", w.replicas[0].tls)
		kit.Must(t, err)
		client := tls.Client(conn, &tls.Config{ServerName: name, InsecureSkipVerify: true})
		if err := client.HandshakeContext(t.Context()); err == nil {
			t.Errorf("the host %q is served", name)
		}
		_ = conn.Close()
	}
}

// testConnect checks requests with the method CONNECT, as the proxies on nodes send them.
func (w *world) testConnect(t *testing.T) {
	connect := func(target string) (net.Conn, string) {
		conn, err := net.Dial("tcp", w.replicas[1].connect)
		kit.Must(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, err = fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, target)
		kit.Must(t, err)
		response, err := http.ReadResponse(bufio.NewReader(io.LimitReader(conn, int64(len("HTTP/1.1 200 OK\r\n\r\n")))), &http.Request{Method: http.MethodConnect})
		if err != nil {
			return conn, err.Error()
		}
		defer response.Body.Close()
		return conn, response.Status
	}
	two := w.shoots[1]
	conn, status := connect(two.host + ":443")
	if status != "200 OK" {
		t.Fatalf("the host of a shoot: %s", status)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(two.authority.PEM)
	if err := tls.Client(conn, &tls.Config{ServerName: two.host, RootCAs: roots}).HandshakeContext(t.Context()); err != nil {
		t.Errorf("the API server does not answer: %v", err)
	}
	for _, target := range []string{"etcd-main-client." + two.namespace + ".svc.cluster.local:443", two.host + ":2379", "192.0.2.21:6443"} {
		if _, status := connect(target); status == "200 OK" {
			t.Errorf("%s is reached", target)
		}
	}
}

// testNodeProxy checks that a client that names no host, because it connects to an address, reaches the API server through the proxy on its node.
func (w *world) testNodeProxy(t *testing.T) {
	two := w.shoots[1]
	listener, err := net.Listen("tcp", net.JoinHostPort(local, "0"))
	kit.Must(t, err)
	server := forward.NewServer(logr.Discard(), forward.NewMetrics(prometheus.NewRegistry()), forward.Limits{})
	go func() {
		_ = server.Serve(context.Background(), listener, nodeproxy.Server{Gateway: w.replicas[0].connect, Host: two.host + ":443"}.Open)
	}()
	t.Cleanup(func() { _ = listener.Close(); server.Close() })
	config := two.cp.Config()
	config.Host = "https://" + listener.Addr().String()
	if why := w.asks(config, two); why != "" {
		t.Error(why)
	}
	config = w.shoots[0].cp.Config()
	config.Host = "https://" + listener.Addr().String()
	if why := w.asks(config, two); why == "" {
		t.Error("credentials of another shoot are accepted")
	}
}

// testEndpoint checks that no request fails when an endpoint refuses connections, although the EndpointSlice still has it.
func (w *world) testEndpoint(t *testing.T) {
	w.fail("192.0.2.21:6443")
	for range 20 {
		for _, s := range w.shoots {
			config := w.access(s, s)
			if why := w.asks(config, s); why != "" {
				t.Fatalf("%s: %s", s.name, why)
			}
		}
	}
}

// testRestart replaces both replicas, one after the other, while clients send requests. It counts those that fail.
func (w *world) testRestart(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var done, failed atomic.Int64
	var group sync.WaitGroup
	for i := range 6 {
		s := w.shoots[i%2]
		group.Go(func() {
			clients, err := kubernetes.NewForConfig(w.access(s, s))
			kit.Must(t, err)
			interval := 50 * time.Millisecond
			if i < 2 {
				interval = 5 * time.Second // longer than a connection may be quiet
			}
			pause := time.NewTicker(interval)
			defer pause.Stop()
			for ctx.Err() == nil {
				var why string
				if i < 2 { // as a controller
					why = w.asksBy(clients, s)
				} else { // as kubectl
					why = w.asks(once(w.access(s, s)), s)
				}
				if why != "" && ctx.Err() == nil {
					failed.Add(1)
					t.Logf("client %d: %s", i, why)
				}
				done.Add(1)
				select {
				case <-pause.C:
				case <-ctx.Done():
				}
			}
		})
	}
	for _, r := range w.replicas {
		kit.Must(t, w.end(r))
		w.start(r)
		kit.Eventually(t, "the new replica is ready", r.ready)
	}
	cancel()
	group.Wait()
	t.Logf("%d of %d requests failed", failed.Load(), done.Load())
	if failed.Load() > 0 || done.Load() < 20 {
		t.Errorf("%d of %d requests failed", failed.Load(), done.Load())
	}
}
