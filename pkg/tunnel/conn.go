package tunnel

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
)

// watchedConn is a TLS connection for HTTP/2. It records when it has ended, and why. It hides that it uses TLS from net/http, because the roles of
// the two sides are not the usual ones.
type watchedConn struct {
	net.Conn
	tls   *tls.Conn
	ended chan struct{}

	once sync.Once
	mu   sync.Mutex
	err  error
}

func watch(conn *tls.Conn) *watchedConn {
	return &watchedConn{Conn: conn, tls: conn, ended: make(chan struct{})}
}

// Read implements [net.Conn].
func (c *watchedConn) Read(into []byte) (int, error) {
	count, err := c.Conn.Read(into)
	if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.err == nil {
			c.err = err
		}
	}
	return count, err
}

// Close implements [net.Conn]. HTTP/2 closes a connection that has ended.
func (c *watchedConn) Close() error {
	c.once.Do(func() { close(c.ended) })
	return c.Conn.Close()
}

// failure returns why the connection has ended. It is never nil.
func (c *watchedConn) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		return io.EOF
	}
	return c.err
}

// single is a listener that accepts one connection, and ends with it.
type single struct {
	conn          *watchedConn
	given, closed sync.Once
	done          chan struct{}
}

func listenTo(conn *watchedConn) *single { return &single{conn: conn, done: make(chan struct{})} }

// Accept implements [net.Listener].
func (l *single) Accept() (net.Conn, error) {
	var first net.Conn
	l.given.Do(func() { first = l.conn })
	if first != nil {
		return first, nil
	}
	select {
	case <-l.conn.ended:
	case <-l.done:
	}
	return nil, net.ErrClosed
}

// Close implements [net.Listener]. It does not end the connection.
func (l *single) Close() error {
	l.closed.Do(func() { close(l.done) })
	return nil
}

// Addr implements [net.Listener].
func (l *single) Addr() net.Addr { return l.conn.LocalAddr() }

// onlyHTTP2 is HTTP/2 without a negotiation.
func onlyHTTP2() *http.Protocols {
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	return protocols
}

// limits are those of the connections between servers and agents.
func limits() *http.HTTP2Config {
	return &http.HTTP2Config{
		MaxConcurrentStreams: streams, MaxReceiveBufferPerStream: streamBuffer, MaxReceiveBufferPerConnection: connectionBuffer,
		SendPingTimeout: idleBeforePing, PingTimeout: pingTimeout,
	}
}
