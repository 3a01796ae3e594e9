package gate

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

const (
	// headerTimeout bounds how long the handshake and a request may take to arrive, writeTimeout how long an answer may take that sets
	// no time of its own, idleTimeout how long a connection is kept without a request.
	headerTimeout, writeTimeout, idleTimeout = 10 * time.Second, 30 * time.Second, time.Minute
	// headerLimit is enough for two tokens.
	headerLimit = 48 << 10
	// mostConnections is how many are served at the same time; others wait.
	mostConnections = 256
	// farewell is how long is waited for answers under way at the end.
	farewell = time.Second
)

// Server serves the page by HTTPS. It is a runnable of a manager, in every replica.
type Server struct {
	Gate *Gate
	// Address is what is listened on, host and port.
	Address string
	// Certificate is what is shown to browsers.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Follow has the gate know ManagedResources until the context ends.
	Follow func(ctx context.Context) error
	Log    logr.Logger
}

// NeedLeaderElection returns false: every replica serves.
func (s *Server) NeedLeaderElection() bool { return false }

// Start serves until the context ends.
func (s *Server) Start(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Address)
	if err != nil {
		return fmt.Errorf("serve the page: %w", err)
	}
	http1 := new(http.Protocols)
	http1.SetHTTP1(true) // one connection is one request at a time
	server := &http.Server{
		Handler: s.Gate.Handler(), ReadHeaderTimeout: headerTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: headerLimit, Protocols: http1, TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.Certificate},
		ErrorLog:    slog.NewLogLogger(logr.ToSlogHandler(s.Log.V(1)), slog.LevelInfo),
		BaseContext: func(net.Listener) context.Context { return ctx }, // so that streams end with it
	}
	s.Log.Info("Serving the page about ManagedResources, to viewers with a token, with their own rights", "address", listener.Addr().String())
	ended := make(chan error, 2)
	go func() { ended <- server.ServeTLS(limit(listener, mostConnections), "", "") }()
	go func() { ended <- s.Follow(ctx) }()
	sweep := s.Gate.options.Clock.NewTicker(SweepPeriod)
	defer sweep.Stop()
	for {
		select {
		case <-sweep.C():
			s.Gate.Sweep()
			continue
		case err = <-ended:
		case <-ctx.Done():
			err = nil
		}
		break
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	if err := server.Shutdown(ending); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("end the page: %w", err)
	}
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("serve the page: %w", err)
	}
	return nil
}

// limited is a listener that has no more than so many connections at the same time.
type limited struct {
	net.Listener
	open chan struct{}
	done chan struct{}
	end  func()
}

func limit(listener net.Listener, most int) net.Listener {
	done := make(chan struct{})
	return &limited{Listener: listener, open: make(chan struct{}, most), done: done, end: sync.OnceFunc(func() { close(done) })}
}

// Accept waits until there is room for a connection, and for the connection.
func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.open <- struct{}{}:
	case <-l.done:
		return nil, net.ErrClosed
	}
	connection, err := l.Listener.Accept()
	if err != nil {
		<-l.open
		return nil, err
	}
	return &counted{Conn: connection, closed: sync.OnceFunc(func() { <-l.open })}, nil
}

// Close ends the listener.
func (l *limited) Close() error {
	l.end()
	return l.Listener.Close()
}

// counted is a connection that makes room when it is closed.
type counted struct {
	net.Conn
	closed func()
}

// Close closes the connection.
func (c *counted) Close() error {
	defer c.closed()
	return c.Conn.Close()
}
