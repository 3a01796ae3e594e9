// Package tunnel tests the tunnel with a real API server, whose egress selector leads to the servers of the tunnel.
package tunnel

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes"

	"github.com/trellis-k8s/trellis/cmd/tunnel/app"
	"github.com/trellis-k8s/trellis/pkg/tunnel"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/pki"
)

const (
	agentName  = "vpn-shoot-client"
	clientName = "kube-apiserver-http-proxy-client"
	host       = "127.0.0.1"
	// Addresses in the network of the cluster, to which the API server has no route.
	nodeAddress = "192.0.2.10"
	podAddress  = "192.0.2.20"
)

// server is a server of the tunnel: the real program.
type server struct {
	name, agents, clients, health string
	args                          []string
	process                       *controlplane.Process
}

// world is a cluster with an API server that reaches it through the tunnel.
type world struct {
	*testing.T
	cp        *controlplane.ControlPlane
	client    *kubernetes.Clientset
	authority *pki.Authority
	servers   []*server
	program   string
	// network is what has the addresses of the cluster: host and port → listener.
	network map[string]string
	// cut makes agents and servers lose each other.
	cut atomic.Bool
}

// newWorld starts two servers, and an API server that uses them.
func newWorld(t *testing.T) *world {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a control plane, which -short excludes")
	}
	w := &world{T: t, authority: pki.New(t, "ca-vpn"), network: map[string]string{}}
	var err error
	w.program, err = controlplane.BuildProgram[app.Program]()
	kit.Must(t, err)
	front := w.balance()
	client := w.authority.Write(t, nil, clientName)
	file := filepath.Join(t.TempDir(), "egress.yaml")
	kit.Must(t, os.WriteFile(file, []byte(`apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport: {tcp: {url: "https://`+front+`", tlsConfig: {caBundle: "`+client.Authority+`", clientCert: "`+client.Certificate+`", clientKey: "`+client.Key+`"}}}
`), 0o600))
	w.cp, err = controlplane.Start(t.Context(), controlplane.Options{APIServerArgs: map[string][]string{
		"egress-selector-config-file": {file}, "enable-aggregator-routing": {"true"}, "kubelet-preferred-address-types": {"InternalIP"},
	}})
	kit.Must(t, err)
	t.Cleanup(func() { kit.Must(t, w.cp.Stop()) })
	w.client, err = kubernetes.NewForConfig(w.cp.Config())
	kit.Must(t, err)
	for number := range 2 {
		w.servers = append(w.servers, w.newServer(fmt.Sprintf("server-%d", number)))
		w.start(w.servers[number])
	}
	return w
}

func (w *world) newServer(name string) *server {
	w.Helper()
	files := w.authority.Write(w, nil, "vpn-seed-server", host)
	address := func() string { return net.JoinHostPort(host, fmt.Sprint(kit.FreePort(w))) }
	s := &server{name: name, agents: address(), clients: address(), health: address()}
	s.args = []string{
		"server", "--agents-address=" + s.agents, "--clients-address=" + s.clients, "--health-address=" + s.health, "--shutdown-delay=0s",
		"--tls-cert-file=" + files.Certificate, "--tls-private-key-file=" + files.Key, "--ca-file=" + files.Authority,
		"--agent-name=" + agentName, "--client-name=" + clientName,
	}
	return s
}

func (w *world) start(s *server) {
	w.Helper()
	var err error
	s.process, err = w.cp.StartProcess(fmt.Sprintf("%s-%d", s.name, time.Now().UnixNano()), w.program, s.args...)
	kit.Must(w, err)
}

// ready returns why a server is not ready.
func (s *server) ready() string {
	response, err := http.Get("http://" + s.health + "/readyz")
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusOK {
		return string(text)
	}
	return ""
}

// balance returns an address whose connections go to the servers that are ready, as those of a Service.
func (w *world) balance() string {
	w.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	kit.Must(w, err)
	w.Cleanup(func() { _ = listener.Close() })
	go func() {
		for next := 0; ; next++ {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for i := range w.servers {
					s := w.servers[(next+i)%len(w.servers)]
					if s.ready() == "" && forward(conn, s.clients) {
						return
					}
				}
			}()
		}
	}()
	return listener.Addr().String()
}

// forward joins a connection to an address. It reports whether the address is reached.
func forward(conn net.Conn, address string) bool {
	to, err := net.DialTimeout("tcp", address, 10*time.Second)
	if err != nil {
		return false
	}
	defer to.Close()
	done := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{conn, to}, {to, conn}} {
		go func() {
			_, _ = io.Copy(pair[0], pair[1])
			done <- struct{}{}
		}()
	}
	<-done
	return true
}

// gateway returns an address in front of that of a server, which is not reached while the network is cut.
func (w *world) gateway(address string) string {
	w.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	kit.Must(w, err)
	w.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				if w.cut.Load() {
					return
				}
				ended := make(chan struct{})
				go func() {
					forward(conn, address)
					close(ended)
				}()
				tick := time.NewTicker(50 * time.Millisecond)
				defer tick.Stop()
				for !w.cut.Load() {
					select {
					case <-ended:
						return
					case <-tick.C:
					}
				}
			}()
		}
	}()
	return listener.Addr().String()
}

// agent starts an agent in the network of the cluster, with a certificate of an authority.
func (w *world) agent(by *pki.Authority) {
	w.Helper()
	files := by.Write(w, w.authority, agentName)
	config, err := tunnel.Files{Certificate: files.Certificate, Key: files.Key, Authorities: files.Authority}.ForServers()
	kit.Must(w, err)
	agent := &tunnel.Agent{TLS: config, Log: logr.Discard(), Metrics: tunnel.NewMetrics(prometheus.NewRegistry())}
	for _, s := range w.servers {
		agent.Servers = append(agent.Servers, tunnel.Endpoint{Name: host, Address: w.gateway(s.agents)})
	}
	agent.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		listening, found := w.network[address]
		if !found {
			return nil, fmt.Errorf("dial %s: no route to host", address)
		}
		return (&net.Dialer{}).DialContext(ctx, network, listening)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		agent.Run(ctx)
		close(ended)
	}()
	w.Cleanup(func() { cancel(); <-ended })
}

// serve serves HTTPS at an address of the cluster.
func (w *world) serve(address string, certificate, key []byte, handler http.Handler) {
	w.Helper()
	pair, err := tls.X509KeyPair(certificate, key)
	kit.Must(w, err)
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	kit.Must(w, err)
	serving := &http.Server{Handler: handler, TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, ReadHeaderTimeout: time.Minute}
	go func() { _ = serving.ServeTLS(listener, "", "") }()
	w.Cleanup(func() { _ = serving.Close() })
	w.network[address] = listener.Addr().String()
}
