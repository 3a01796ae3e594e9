package tunnel

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"

	"github.com/go-logr/logr"
)

// Server passes connections of an API server on to agents.
type Server struct {
	log   logr.Logger
	state state

	mu     sync.Mutex
	agents []*http.ClientConn
	next   int
	// open are the connections of API servers; nil once the server is closed.
	open map[net.Conn]bool
}

// NewServer returns a server without agents.
func NewServer(log logr.Logger, metrics *Metrics) *Server {
	return &Server{log: log, state: state{metrics: metrics}, open: map[net.Conn]bool{}}
}

// Ready returns why no agent is connected, with the last error; nil if one is.
func (s *Server) Ready() error { return s.state.ready("agent") }

// Drain makes the server not ready. It continues to serve.
func (s *Server) Drain() { s.state.drain() }

// ServeAgents accepts agents until the listener is closed. config is that of [Files.ForAgents].
func (s *Server) ServeAgents(ctx context.Context, listener net.Listener, config *tls.Config) error {
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("accept agents: %w", err)
		}
		go s.serveAgent(context.WithoutCancel(ctx), conn, config)
	}
}

// serveAgent authenticates an agent and makes it available, until its connection ends.
func (s *Server) serveAgent(ctx context.Context, plain net.Conn, config *tls.Config) {
	address := plain.RemoteAddr().String()
	conn := watch(tls.Server(plain, config))
	defer func() { _ = conn.Close() }()
	agent, err := greet(ctx, conn)
	if err != nil {
		err = fmt.Errorf("the agent at %s is refused: %w", address, err)
		s.log.Error(err, "An agent cannot connect")
		s.state.failed(err)
		return
	}
	if !s.add(agent) {
		return
	}
	left := s.state.joined()
	s.log.Info("An agent is connected", "address", address)
	<-conn.ended
	s.remove(agent)
	left(fmt.Errorf("the connection of the agent at %s has ended: %w", address, conn.failure()))
	s.log.Info("The connection of an agent has ended", "address", address)
}

// greet authenticates an agent, and accepts it.
func greet(ctx context.Context, conn *watchedConn) (*http.ClientConn, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	if err := conn.tls.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	transport := &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil },
		Protocols:   onlyHTTP2(), HTTP2: limits(), DisableCompression: true,
	}
	agent, err := transport.NewClientConn(ctx, "http", agentHost+":80")
	if err != nil {
		return nil, fmt.Errorf("start HTTP/2: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+agentHost+pathHello, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := agent.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusNoContent {
		return nil, fmt.Errorf("it answers with the status %s", response.Status)
	}
	return agent, nil
}

func (s *Server) add(agent *http.ClientConn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		return false
	}
	s.agents = append(s.agents, agent)
	return true
}

func (s *Server) remove(agent *http.ClientConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.agents = slices.DeleteFunc(s.agents, func(other *http.ClientConn) bool { return other == agent })
}

// choose returns the agents in the order in which they are tried for a connection. The first one changes with each call.
func (s *Server) choose() []*http.ClientConn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.agents) == 0 {
		return nil
	}
	s.next = (s.next + 1) % len(s.agents)
	chosen := slices.Concat(s.agents[s.next:], s.agents[:s.next])
	return slices.DeleteFunc(chosen, func(agent *http.ClientConn) bool { return agent.Available() <= 0 })
}

// Close ends all connections.
func (s *Server) Close() {
	s.mu.Lock()
	agents, open := s.agents, s.open
	s.agents, s.open = nil, nil
	s.mu.Unlock()
	for conn := range open {
		_ = conn.Close()
	}
	for _, agent := range agents {
		_ = agent.Close()
	}
}
