package tunnel

import (
	"bytes"
	"crypto/rand"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/pki"
)

const podAddress = "100.96.1.2:443"

// TestConnections checks that bytes arrive in both directions, that each side can end its half, and that errors of the cluster's network are
// reported.
func TestConnections(t *testing.T) {
	w := newWorld(t)
	server := w.serve("", "")
	client := w.files(w.authority, clientName)
	if conn, err := w.dial(server, client, podAddress); err == nil || !strings.Contains(err.Error(), "503") || !strings.Contains(err.Error(), "no agent is connected yet") {
		t.Errorf("without an agent: %v, %v", conn, err)
	}
	agent, _ := w.agent(w.authority, agentName, map[string]string{
		podAddress: w.echo(), "100.96.1.3:22": w.target(func(conn net.Conn) { _, _ = io.WriteString(conn, "SSH-2.0") }),
	}, server.agents)
	w.awaitReady("the server has an agent", server.Ready)
	w.awaitReady("the agent has a server", agent.Ready)

	conn, err := w.dial(server, client, podAddress)
	kit.Must(t, err)
	sent := make([]byte, 8<<20)
	_, _ = rand.Read(sent)
	go func() {
		_, _ = conn.Write(sent)
		if half, can := conn.(interface{ CloseWrite() error }); can {
			_ = half.CloseWrite()
		}
	}()
	got, err := io.ReadAll(conn)
	kit.Must(t, err)
	if !bytes.Equal(got, slices.Concat(sent, []byte("goodbye"))) {
		t.Errorf("%d bytes came back, want %d", len(got), len(sent)+len("goodbye"))
	}

	speaksFirst, err := w.dial(server, client, "100.96.1.3:22")
	kit.Must(t, err)
	if got, err = io.ReadAll(speaksFirst); string(got) != "SSH-2.0" {
		t.Errorf("a server that speaks first said %q: %v", got, err)
	}
	if _, err = w.dial(server, client, "100.96.9.9:443"); err == nil || !strings.HasPrefix(err.Error(), "502 connect to 100.96.9.9:443 through the tunnel: dial 100.96.9.9:443: no route to host\n") {
		t.Errorf("an address that does not exist: %v", err)
	}
}

// TestSlowReader checks that a connection that is not read does not stop the others.
func TestSlowReader(t *testing.T) {
	w := newWorld(t)
	server := w.serve("", "")
	endless := w.target(func(conn net.Conn) {
		for {
			if _, err := conn.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	})
	w.agent(w.authority, agentName, map[string]string{podAddress: w.echo(), "100.96.1.4:1": endless, "100.96.1.5:1": w.target(func(net.Conn) { select {} })}, server.agents)
	w.awaitReady("the server has an agent", server.Ready)
	client := w.files(w.authority, clientName)
	for range 3 { // logs that are not read, and a Pod that does not read its requests
		unread, err := w.dial(server, client, "100.96.1.4:1")
		kit.Must(t, err)
		t.Cleanup(func() { _ = unread.Close() })
		deaf, err := w.dial(server, client, "100.96.1.5:1")
		kit.Must(t, err)
		t.Cleanup(func() { _ = deaf.Close() })
		go func() { _, _ = io.Copy(deaf, endlessReader{}) }()
	}
	for range 20 {
		if why := w.works(server, client, podAddress); why != "" {
			t.Fatal(why)
		}
	}
}

type endlessReader struct{}

func (endlessReader) Read(into []byte) (int, error) { return len(into), nil }

// TestForeign checks that each side refuses what another cluster, or another kind of client, shows.
func TestForeign(t *testing.T) {
	w := newWorld(t)
	server := w.serve("", "")
	foreign := pki.New(t, "ca-vpn") // of another cluster, with the same name
	targets := map[string]string{podAddress: w.echo()}
	for name, agent := range map[string]func() (*Agent, func()){
		"an agent of another cluster":    func() (*Agent, func()) { return w.agent(foreign, agentName, targets, server.agents) },
		"an agent that is an API server": func() (*Agent, func()) { return w.agent(w.authority, clientName, targets, server.agents) },
	} {
		refused, stop := agent()
		kit.Eventually(t, name+" is refused on both sides", func() string {
			if err := server.Ready(); err == nil || !strings.Contains(err.Error(), "is refused") {
				return "the server says: " + kit.TextOf(err)
			}
			if err := refused.Ready(); err == nil || !strings.Contains(err.Error(), "no server is connected: server "+serverName) {
				return "the agent says: " + kit.TextOf(err)
			}
			return ""
		})
		stop()
	}
	w.agent(w.authority, agentName, targets, server.agents)
	w.awaitReady("the right agent is accepted", server.Ready)
	for name, files := range map[string]Files{
		"an API server of another cluster": w.files(foreign, clientName), "an API server that is an agent": w.files(w.authority, agentName),
	} {
		if why := w.works(server, files, podAddress); why == "" {
			t.Errorf("%s is accepted", name)
		}
	}
	if why := w.works(server, w.files(w.authority, clientName), podAddress); why != "" {
		t.Errorf("the right API server: %s", why)
	}
}

// TestServerIsFake checks that an agent does not connect to a server with a certificate of another authority.
func TestServerIsFake(t *testing.T) {
	w, other := newWorld(t), newWorld(t)
	server := other.serve("", "")
	agent, _ := w.agent(w.authority, agentName, nil, server.agents)
	kit.Eventually(t, "the agent refuses the server", func() string {
		if err := agent.Ready(); err == nil || !strings.Contains(err.Error(), "certificate") {
			return kit.TextOf(err)
		}
		return ""
	})
}

// TestReconnects checks that a tunnel that was cut is used again, and that both ends know why there is none meanwhile.
func TestReconnects(t *testing.T) {
	w := newWorld(t)
	server, client := w.serve("", ""), w.files(w.authority, clientName)
	agent, _ := w.agent(w.authority, agentName, map[string]string{podAddress: w.echo()}, server.agents)
	w.awaitReady("the agent has a server", agent.Ready)
	server.stop()
	kit.Eventually(t, "the agent knows that it has no server", func() string {
		if err := agent.Ready(); err == nil || !strings.Contains(err.Error(), "connection refused") {
			return kit.TextOf(err)
		}
		return ""
	})
	again := w.serve(server.agents, server.clients)
	kit.Eventually(t, "the new server is used", func() string { return w.works(again, client, podAddress) })
}

// TestAgentEnds checks that no connection fails when one of two agents ends, and that its connections may go on until they are over.
func TestAgentEnds(t *testing.T) {
	w := newWorld(t)
	server, client := w.serve("", ""), w.files(w.authority, clientName)
	targets := map[string]string{podAddress: w.echo()}
	first, stop := w.agent(w.authority, agentName, targets, server.agents)
	w.awaitReady("the first agent is connected", first.Ready)
	w.awaitReady("the server has an agent", server.Ready)
	conn, err := w.dial(server, client, podAddress)
	kit.Must(t, err)
	second, _ := w.agent(w.authority, agentName, targets, server.agents)
	w.awaitReady("the second agent is connected", second.Ready)
	kit.Eventually(t, "the server has two agents", func() string {
		if len(server.choose()) != 2 {
			return "it has fewer"
		}
		return ""
	})
	stopped := make(chan struct{})
	go func() {
		stop()
		close(stopped)
	}()
	for {
		if why := w.works(server, client, podAddress); why != "" {
			t.Fatal(why)
		}
		if len(server.choose()) == 1 {
			break
		}
	}
	if why := says(conn, "still here"); why != "" {
		t.Errorf("a connection of the agent that ends: %s", why)
	}
	_ = conn.Close()
	select {
	case <-stopped:
	case <-t.Context().Done():
	}
}

// TestTwoServers checks that an agent serves two servers, and the one that is left.
func TestTwoServers(t *testing.T) {
	w := newWorld(t)
	one, two, client := w.serve("", ""), w.serve("", ""), w.files(w.authority, clientName)
	w.agent(w.authority, agentName, map[string]string{podAddress: w.echo()}, one.agents, two.agents)
	w.awaitReady("the first server has the agent", one.Ready)
	w.awaitReady("the second server has the agent", two.Ready)
	one.stop()
	if why := w.works(two, client, podAddress); why != "" {
		t.Error(why)
	}
	two.Drain()
	if two.Ready() == nil {
		t.Error("a server that ends is ready")
	}
	if why := w.works(two, client, podAddress); why != "" {
		t.Errorf("a server that ends does not serve any more: %s", why)
	}
}

// TestDialer checks which addresses are not of the cluster.
func TestDialer(t *testing.T) {
	for _, address := range []string{"127.0.0.1:8080", "[::1]:8080", "169.254.169.254:80", "[::ffff:127.0.0.1]:80", "0.0.0.0:80", "[fe80::1]:80"} {
		if err := Dialer.Control("tcp", address, nil); err == nil {
			t.Errorf("%s is reached", address)
		}
	}
	for _, address := range []string{"10.1.2.3:10250", "100.64.0.1:443", "[2001:db8::1]:443", "203.0.113.7:443"} {
		if err := Dialer.Control("tcp", address, nil); err != nil {
			t.Error(err)
		}
	}
}
