package tunnel

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Limits of an agent that connects to a server: a network that is back is used within seconds.
const (
	serverDialTimeout          = 3 * time.Second
	retrySoonest, retrySlowest = 250 * time.Millisecond, 2 * time.Second
	retryFactor, retryJitter   = 1.6, 0.3
)

// Endpoint is where an agent reaches a server.
type Endpoint struct {
	// Name is the name in the certificate of the server. A gateway can choose the server by it (SNI).
	Name string
	// Address is a host and a port.
	Address string
}

// Agent connects to servers and opens the connections that they ask for.
type Agent struct {
	Servers []Endpoint
	// TLS is the configuration of [Files.ForServers].
	TLS *tls.Config
	// Dial opens a connection in the network of the cluster: see [Dialer].
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// DrainTimeout is how long connections may last when the agent ends. Servers use others from then on.
	DrainTimeout time.Duration
	Log          logr.Logger
	Metrics      *Metrics

	state state
}

// Ready returns why no server is connected, with the last error; nil if one is.
func (a *Agent) Ready() error { return a.state.ready("server") }

// Run keeps a connection to each server until the context ends.
func (a *Agent) Run(ctx context.Context) {
	a.state.metrics = a.Metrics
	var group sync.WaitGroup
	for _, server := range a.Servers {
		group.Go(func() { a.keep(ctx, server) })
	}
	<-ctx.Done()
	a.state.drain()
	group.Wait()
}

// keep keeps a connection to a server.
func (a *Agent) keep(ctx context.Context, server Endpoint) {
	newBackoff := func() wait.Backoff {
		return wait.Backoff{Duration: retrySoonest, Factor: retryFactor, Jitter: retryJitter, Steps: math.MaxInt32, Cap: retrySlowest}
	}
	backoff := newBackoff()
	for {
		connected, err := a.connect(ctx, server)
		if ctx.Err() != nil {
			return
		}
		if connected {
			backoff = newBackoff()
		}
		err = fmt.Errorf("server %s at %s: %w", server.Name, server.Address, err)
		a.state.failed(err)
		a.Log.Error(err, "There is no connection to a server")
		pause := time.NewTimer(backoff.Step())
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-pause.C:
		}
	}
}

// connect connects to a server and serves its requests until the connection ends. It reports whether the server has accepted the agent. The error
// says why the connection has ended; it is never nil.
func (a *Agent) connect(ctx context.Context, server Endpoint) (connected bool, err error) {
	conn, err := a.dial(ctx, server)
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.Close() }()
	handler := &requests{agent: a, server: server.Name}
	serving := &http.Server{
		Handler: handler, Protocols: onlyHTTP2(), HTTP2: limits(), ReadHeaderTimeout: handshakeTimeout,
		ErrorLog: slog.NewLogLogger(logr.ToSlogHandler(a.Log), slog.LevelError),
	}
	// A server that does not accept the agent says so only after the handshake.
	refusal := time.AfterFunc(handshakeTimeout, func() {
		if !handler.greeted.Load() {
			_ = conn.Close()
		}
	})
	defer refusal.Stop()
	stop := context.AfterFunc(ctx, func() { a.drain(context.WithoutCancel(ctx), serving, conn) })
	defer stop()
	_ = serving.Serve(listenTo(conn)) // which ends when it is shut down, or with the connection
	<-conn.ended
	if connected = handler.greeted.Load(); connected {
		handler.left(conn.failure())
	}
	return connected, conn.failure()
}

// drain lets the server know that it must use other agents, and ends the connection when it has no more streams, or after a time.
func (a *Agent) drain(ctx context.Context, serving *http.Server, conn net.Conn) {
	limited, cancel := context.WithTimeout(ctx, a.DrainTimeout)
	defer cancel()
	_ = serving.Shutdown(limited) // the connection is closed either way
	_ = conn.Close()
}

// dial opens a connection to a server. Each side has authenticated the other one, but whether the server accepts the agent is not known yet.
func (a *Agent) dial(ctx context.Context, server Endpoint) (*watchedConn, error) {
	plain, err := (&net.Dialer{Timeout: serverDialTimeout}).DialContext(ctx, "tcp", server.Address)
	if err != nil {
		return nil, err
	}
	config := a.TLS.Clone()
	config.ServerName = server.Name
	conn := watch(tls.Client(plain, config))
	limited, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	if err := conn.tls.HandshakeContext(limited); err != nil {
		_ = plain.Close()
		return nil, err
	}
	return conn, nil
}
