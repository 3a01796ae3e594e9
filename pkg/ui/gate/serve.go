package gate

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/net/netutil"
)

const (
	// headerTimeout limits the time for the handshake and for receiving a request. writeTimeout limits the time for a
	// response that
	// does not set its own limit. idleTimeout limits how long a connection without a request is kept.
	headerTimeout, writeTimeout, idleTimeout = 10 * time.Second, 30 * time.Second, time.Minute
	// headerLimit is sufficient for two tokens.
	headerLimit = 48 << 10
	// maxConnections limits the number of concurrent connections. Others wait.
	maxConnections = 256
	// shutdownTimeout limits the wait for pending responses at shutdown.
	shutdownTimeout = time.Second
)

// Server serves the page over HTTPS. It is a runnable of a manager, in every replica.
type Server struct {
	Gate *Gate
	// Address to listen on, host and port.
	Address string
	// Certificate returns the serving certificate.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Follow keeps the ManagedResources of the gate up to date until the context is canceled.
	Follow func(ctx context.Context) error
	Log    logr.Logger
}

// NeedLeaderElection returns false, because every replica serves the page.
func (s *Server) NeedLeaderElection() bool { return false }

// Start serves the page until the context is canceled.
func (s *Server) Start(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Address)
	if err != nil {
		return fmt.Errorf("serve the page: %w", err)
	}
	http1 := new(http.Protocols)
	http1.SetHTTP1(true) // one request per connection at a time
	server := &http.Server{
		Handler: s.Gate.Handler(), ReadHeaderTimeout: headerTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: headerLimit, Protocols: http1, TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.Certificate},
		ErrorLog:    slog.NewLogLogger(logr.ToSlogHandler(s.Log.V(1)), slog.LevelInfo),
		BaseContext: func(net.Listener) context.Context { return ctx }, // so that streams end with it
	}
	s.Log.Info("Serving the page with ManagedResources to viewers with a token, with their own permissions",
		"address", listener.Addr().String())
	ended := make(chan error, 2)
	go func() { ended <- server.ServeTLS(netutil.LimitListener(listener, maxConnections), "", "") }()
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
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(ending); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("end the page: %w", err)
	}
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("serve the page: %w", err)
	}
	return nil
}
