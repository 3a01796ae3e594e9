// Package forward accepts TCP connections, asks where each of them leads, and joins it to a connection with an address there. It limits the
// number of connections, and ends them gracefully.
package forward

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// Timeouts of connections.
const (
	// openTimeout is how long a client may take until the server knows where its connection leads.
	openTimeout = 10 * time.Second
	// dialTimeout is how long a single address may take to accept a connection. The next one is tried then.
	dialTimeout = 3 * time.Second
	// mostDials is how many addresses are tried.
	mostDials = 4
	// acceptPause is how long the server waits after an error, for example if there are too many open files.
	acceptPause = 50 * time.Millisecond
)

// keepAlive finds peers that are gone within 45 seconds.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 10 * time.Second, Count: 3}

// ErrNoRoute is the error of an Opener for a destination that does not exist. ErrInvalid is that for a client that does not use the protocol.
var (
	ErrNoRoute = errors.New("no route leads to this host")
	ErrInvalid = errors.New("the client does not use the protocol")
)

// Destination is where a connection leads.
type Destination struct {
	// Name identifies the destination in limits and the log.
	Name string
	// Addresses are tried in this order: each is a host and a port. Without any, the connection is closed.
	Addresses []string
	// Greet prepares the connection with an address, before anything else is sent; nil for nothing.
	Greet func(net.Conn) error
	// Answer is sent to the client once an address has accepted the connection. Received are the bytes that the client has sent so far, for the address.
	Answer, Received []byte
}

// Opener reads from a new connection where it leads. The connection has a deadline. Nothing may be kept of it.
type Opener func(context.Context, net.Conn) (Destination, error)

// Limits are the most connections at the same time; 0 for no limit.
type Limits struct {
	// Connections is the number of all connections, including those whose destination is not known yet.
	Connections int
	// Opening is the number of those whose destination is not known yet. It keeps clients that send nothing from using up all connections.
	Opening int
	// PerDestination is the number of those to one destination.
	PerDestination int
}

// Server forwards connections.
type Server struct {
	// Dial connects to an address. NewServer sets it; it may be replaced before Serve.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	log     logr.Logger
	metrics *Metrics
	limits  Limits

	mu       sync.Mutex
	opening  map[net.Conn]bool
	sessions map[*session]bool
	count    map[string]int
	closed   bool
}

// NewServer returns a server without connections.
func NewServer(log logr.Logger, metrics *Metrics, limits Limits) *Server {
	return &Server{
		Dial: (&net.Dialer{KeepAliveConfig: keepAlive}).DialContext,
		log:  log, metrics: metrics, limits: limits, opening: map[net.Conn]bool{}, sessions: map[*session]bool{}, count: map[string]int{},
	}
}

// Serve accepts connections until the listener is closed. The context must not end before.
func (s *Server) Serve(ctx context.Context, listener net.Listener, open Opener) error {
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			s.log.Error(err, "A connection cannot be accepted", "address", listener.Addr().String())
			<-time.After(acceptPause)
			continue
		}
		client, is := conn.(*net.TCPConn)
		if !is || !s.begin(client) {
			s.metrics.ended(resultLimit)
			_ = conn.Close()
			continue
		}
		go s.handle(ctx, client, open)
	}
}

// begin counts a new connection. It returns false if there are too many.
func (s *Server) begin(client net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || reached(s.limits.Opening, len(s.opening)) || reached(s.limits.Connections, len(s.opening)+len(s.sessions)) {
		return false
	}
	s.opening[client] = true
	return true
}

func reached(limit, number int) bool { return limit > 0 && number >= limit }

// handle opens a connection and forwards it until it ends.
func (s *Server) handle(ctx context.Context, client *net.TCPConn, open Opener) {
	defer func() { _ = client.Close() }()
	one, result, err := s.open(ctx, client, open)
	if err != nil {
		s.metrics.ended(result)
		s.log.V(1).Info("A connection is closed", "client", client.RemoteAddr().String(), "reason", err.Error())
		return
	}
	s.metrics.open.Inc()
	sent, received := one.run()
	s.metrics.open.Dec()
	s.metrics.bytes.WithLabelValues(directionIn).Add(float64(sent))
	s.metrics.bytes.WithLabelValues(directionOut).Add(float64(received))
	s.metrics.ended(resultForwarded)
	s.end(one)
}

// open finds the destination of a connection and connects to it. The result is that for the metric if there is an error.
func (s *Server) open(ctx context.Context, client *net.TCPConn, open Opener) (_ *session, result string, err error) {
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.opening, client)
	}()
	if err := errors.Join(client.SetKeepAliveConfig(keepAlive), client.SetDeadline(time.Now().Add(openTimeout))); err != nil {
		return nil, resultInvalid, err
	}
	destination, err := open(ctx, client)
	if err != nil {
		if errors.Is(err, ErrNoRoute) {
			return nil, resultNoRoute, err
		}
		return nil, resultInvalid, err
	}
	if len(destination.Addresses) == 0 {
		return nil, resultNoEndpoint, fmt.Errorf("%s has no ready endpoint", destination.Name)
	}
	one := &session{client: client, name: destination.Name}
	if !s.reserve(one) {
		return nil, resultLimit, fmt.Errorf("%s has too many connections", destination.Name)
	}
	if one.target, err = s.connect(ctx, destination); err != nil {
		s.end(one)
		return nil, resultUnreachable, err
	}
	if err := one.begin(destination); err != nil {
		_ = one.target.Close()
		s.end(one)
		return nil, resultUnreachable, err
	}
	return one, resultForwarded, s.start(one)
}

// reserve counts a connection to its destination. It returns false if there are too many.
func (s *Server) reserve(one *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if reached(s.limits.PerDestination, s.count[one.name]) {
		return false
	}
	s.count[one.name]++
	return true
}

// start makes a session one that Drain ends.
func (s *Server) start(one *session) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = one.target.Close()
		return errors.New("the server ends")
	}
	s.sessions[one] = true
	return nil
}

func (s *Server) end(one *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, one)
	if s.count[one.name]--; s.count[one.name] <= 0 {
		delete(s.count, one.name)
	}
}

// connect connects to the first address that accepts a connection.
func (s *Server) connect(ctx context.Context, destination Destination) (*net.TCPConn, error) {
	var failed []error
	for _, address := range destination.Addresses[:min(len(destination.Addresses), mostDials)] {
		limited, cancel := context.WithTimeout(ctx, dialTimeout)
		conn, err := s.Dial(limited, "tcp", address)
		cancel()
		if err != nil {
			failed = append(failed, err)
			continue
		}
		target, is := conn.(*net.TCPConn)
		if !is {
			return nil, fmt.Errorf("the connection to %s is not a TCP connection", address)
		}
		if destination.Greet == nil {
			return target, nil
		}
		if err := errors.Join(target.SetDeadline(time.Now().Add(openTimeout)), destination.Greet(target)); err != nil {
			_ = target.Close()
			failed = append(failed, fmt.Errorf("%s: %w", address, err))
			continue
		}
		err = target.SetDeadline(time.Time{})
		return target, err
	}
	return nil, errors.Join(failed...)
}
