package tunnel

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/pki"
)

// The common names of the two kinds of clients, and the name of servers.
const (
	agentName  = "vpn-shoot-client"
	clientName = "kube-apiserver-http-proxy-client"
	serverName = "vpn-seed-server-0.shoot--dev--one.svc.cluster.local"
)

// eventually is the timeout of what must happen.
const eventually = 60 * time.Second

// world is a cluster whose API server has no route to it.
type world struct {
	testing.TB
	authority *pki.Authority
}

func newWorld(tb testing.TB) *world {
	tb.Helper()
	return &world{TB: tb, authority: pki.New(tb, "ca-vpn")}
}

// files returns a certificate of an authority, and its authority as that of others.
func (w *world) files(by *pki.Authority, name string, hosts ...string) Files {
	w.Helper()
	written := by.Write(w, w.authority, name, hosts...)
	return Files{Certificate: written.Certificate, Key: written.Key, Authorities: written.Authority}
}

// running is a server that runs.
type running struct {
	*Server
	agents, clients string // addresses
	stop            func()
}

// serve starts a server. Empty addresses stand for free ones.
func (w *world) serve(agents, clients string) *running {
	w.Helper()
	files := w.files(w.authority, "vpn-seed-server", serverName)
	forAgents, err := files.ForAgents(agentName)
	kit.Must(w, err)
	forClients, err := files.ForClients(clientName)
	kit.Must(w, err)
	server := NewServer(logr.Discard(), NewMetrics(prometheus.NewRegistry()))
	back, front := w.listen(agents), w.listen(clients)
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	proxy := &http.Server{Handler: server, TLSConfig: forClients, ReadHeaderTimeout: eventually, Protocols: protocols}
	go func() { _ = server.ServeAgents(context.Background(), back, forAgents) }()
	go func() { _ = proxy.ServeTLS(front, "", "") }()
	r := &running{Server: server, agents: back.Addr().String(), clients: front.Addr().String()}
	r.stop = func() {
		_ = back.Close()
		server.Close()
		_ = proxy.Close()
	}
	w.Cleanup(r.stop)
	return r
}

func (w *world) listen(address string) net.Listener {
	w.Helper()
	if address == "" {
		address = "127.0.0.1:0"
	}
	var listener net.Listener
	kit.Eventually(w, "the address is free", func() string {
		var err error
		if listener, err = net.Listen("tcp", address); err != nil {
			return err.Error()
		}
		return ""
	})
	return listener
}

// agent starts an agent in a network in which targets has the addresses. The returned function ends it.
func (w *world) agent(by *pki.Authority, name string, targets map[string]string, servers ...string) (*Agent, func()) {
	w.Helper()
	config, err := w.files(by, name).ForServers()
	kit.Must(w, err)
	agent := &Agent{TLS: config, Dial: dialer(targets), DrainTimeout: eventually, Log: logr.Discard(), Metrics: NewMetrics(prometheus.NewRegistry())}
	for _, address := range servers {
		agent.Servers = append(agent.Servers, Endpoint{Name: serverName, Address: address})
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		agent.Run(ctx)
		close(ended)
	}()
	w.Cleanup(func() { agent.DrainTimeout = 0; cancel(); <-ended })
	return agent, func() { cancel(); <-ended }
}

// dialer connects to what has an address in the network of the cluster.
func dialer(targets map[string]string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		listening, found := targets[address]
		if !found {
			return nil, fmt.Errorf("dial %s: no route to host", address)
		}
		return (&net.Dialer{}).DialContext(ctx, network, listening)
	}
}

// dial connects to an address in the cluster through a server, as an API server does.
func (w *world) dial(server *running, files Files, address string) (net.Conn, error) {
	config, err := files.ForServers()
	if err != nil {
		return nil, err
	}
	config.NextProtos, config.ServerName = nil, serverName
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: eventually}, "tcp", server.clients, config)
	if err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(eventually))
	if _, err := fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", address); err != nil {
		return nil, err
	}
	buffered := bufio.NewReader(conn)
	response, err := http.ReadResponse(buffered, &http.Request{Method: http.MethodConnect})
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(response.Body)
		_ = conn.Close()
		return nil, fmt.Errorf("%s\n%s", response.Status, strings.TrimSpace(string(text)))
	}
	return &bufferedConn{conn, buffered}, nil
}

type bufferedConn struct {
	*tls.Conn
	from *bufio.Reader
}

func (c *bufferedConn) Read(into []byte) (int, error) { return c.from.Read(into) }

// echo serves one address: it returns what it gets, until the other side ends its half of the connection, and then says goodbye.
func (w *world) echo() string {
	w.Helper()
	return w.target(func(conn net.Conn) {
		_, _ = io.Copy(conn, conn)
		_, _ = io.WriteString(conn, "goodbye")
	})
}

// target serves one address.
func (w *world) target(serve func(net.Conn)) string {
	w.Helper()
	listener := w.listen("")
	w.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				serve(conn)
			}()
		}
	}()
	return listener.Addr().String()
}

// says returns what is wrong with a conversation: text is sent, and must come back.
func says(conn net.Conn, text string) string {
	if _, err := io.WriteString(conn, text); err != nil {
		return err.Error()
	}
	got := make([]byte, len(text))
	if _, err := io.ReadFull(conn, got); err != nil {
		return err.Error()
	}
	if string(got) != text {
		return fmt.Sprintf("got %q, want %q", got, text)
	}
	return ""
}

// works returns why an address that returns what it gets is not reached.
func (w *world) works(server *running, files Files, address string) string {
	conn, err := w.dial(server, files, address)
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	return says(conn, "hello")
}

func (w *world) awaitReady(what string, ready func() error) {
	w.Helper()
	kit.Eventually(w, what, func() string { return kit.TextOf(ready()) })
}
