package tunnel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// dialTimeout is how long a connection in the network of the cluster may take until it is established.
	dialTimeout = 10 * time.Second
	// halfClosed is how long an address may send after the API server has ended its side of a connection.
	halfClosed = time.Minute
)

// Dialer opens connections in the network of a cluster. It refuses addresses that are not in it: those of the machine or Pod itself, and those
// that each network has, such as the address at which clouds return the credentials of a machine.
var Dialer = &net.Dialer{Timeout: dialTimeout, Control: func(_, address string, _ syscall.RawConn) error {
	parsed, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	ip := parsed.Addr().Unmap()
	if ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified() {
		return fmt.Errorf("%s is not an address of the cluster", ip)
	}
	return nil
}}

// requests serves the requests of one server.
type requests struct {
	agent   *Agent
	server  string
	greeted atomic.Bool
	// left records the end of the connection. It is set once greeted is.
	left func(error)
}

// ServeHTTP implements [http.Handler].
func (r *requests) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	switch {
	case request.Method == http.MethodGet && request.URL.Path == pathHello && !r.greeted.Load():
		r.left = r.agent.state.joined()
		r.greeted.Store(true)
		r.agent.Log.Info("Connected to a server", "server", r.server)
		writer.WriteHeader(http.StatusNoContent)
	case request.Method == http.MethodConnect && r.greeted.Load():
		r.connect(writer, request)
	default:
		http.Error(writer, "this agent only supports the method CONNECT", http.StatusMethodNotAllowed)
	}
}

// connect opens a connection and joins it to the stream of the request.
func (r *requests) connect(writer http.ResponseWriter, request *http.Request) {
	metrics := r.agent.Metrics
	ctx, cancel := context.WithTimeout(request.Context(), dialTimeout)
	target, err := r.agent.Dial(ctx, "tcp", request.Host)
	cancel()
	if err != nil {
		metrics.requests.WithLabelValues(resultFailed).Inc()
		http.Error(writer, err.Error(), http.StatusBadGateway)
		return
	}
	metrics.requests.WithLabelValues(resultConnected).Inc()
	metrics.connections.Inc()
	defer metrics.connections.Dec()
	defer func() { _ = target.Close() }()
	stop := context.AfterFunc(request.Context(), func() { _ = target.Close() })
	defer stop()
	controller := http.NewResponseController(writer)
	writer.WriteHeader(http.StatusOK)
	if err := controller.Flush(); err != nil {
		return
	}
	go send(target, request.Body)
	_ = stream(flushing{writer, controller}, target) // the address has ended the connection, or the server has
}

// send copies what the API server sends. When it has ended, the address learns it, and may send for a while.
func send(target net.Conn, from io.Reader) {
	if err := stream(target, from); err != nil {
		_ = target.Close()
		return
	}
	half, can := target.(interface{ CloseWrite() error })
	if !can || errors.Join(half.CloseWrite(), target.SetReadDeadline(time.Now().Add(halfClosed))) != nil {
		_ = target.Close()
	}
}

// flushing sends each part at once.
type flushing struct {
	writer     io.Writer
	controller *http.ResponseController
}

// Write implements [io.Writer].
func (f flushing) Write(part []byte) (int, error) {
	count, err := f.writer.Write(part)
	if err == nil {
		err = f.controller.Flush()
	}
	return count, err
}
