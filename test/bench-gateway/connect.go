package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

const (
	// answerTimeout is how long a connection may take until the server behind the gateway answers.
	answerTimeout = 10 * time.Second
	// answer is what the server sends when it has received something.
	answer = 'a'
)

// target is the server behind all routes. Endpoints must not have addresses of the loopback interface, so that it listens at another one.
type target struct {
	listener net.Listener
	address  string
}

// listen starts the server.
func listen(ctx context.Context) (*target, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("list the addresses of this machine: %w", err)
	}
	for _, address := range addresses {
		network, is := address.(*net.IPNet)
		if !is || network.IP.To4() == nil || !network.IP.IsGlobalUnicast() {
			continue
		}
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(network.IP.String(), "0"))
		if err != nil {
			return nil, fmt.Errorf("listen at %s: %w", network.IP, err)
		}
		one := &target{listener: listener, address: listener.Addr().String()}
		go one.serve()
		return one, nil
	}
	return nil, errors.New("this machine has no IPv4 address except those of the loopback interface, which endpoints cannot have: add one to an interface")
}

// serve answers the first bytes of each connection, and waits for its end.
func (t *target) serve() {
	for {
		conn, err := t.listener.Accept()
		if err != nil {
			return // it is closed
		}
		go func() {
			defer func() { _ = conn.Close() }()
			if _, err := conn.Read(make([]byte, 1<<10)); err != nil {
				return
			}
			_, _ = conn.Write([]byte{answer})
			_, _ = io.Copy(io.Discard, conn)
		}()
	}
}

func (t *target) close() error { return t.listener.Close() }

// recorder is a connection that stores what is sent.
type recorder struct {
	net.Conn

	sent []byte
}

func (r *recorder) Write(part []byte) (int, error) {
	r.sent = append(r.sent, part...)
	return len(part), nil
}

func (*recorder) Read([]byte) (int, error) { return 0, io.EOF }

func (*recorder) Close() error { return nil }

func (*recorder) SetDeadline(time.Time) error { return nil }

// hello returns the first message of a TLS handshake with a server name.
func hello(ctx context.Context, name string) ([]byte, error) {
	to := &recorder{}
	client := tls.Client(to, &tls.Config{ServerName: name, RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12})
	if err := client.HandshakeContext(ctx); len(to.sent) == 0 {
		return nil, fmt.Errorf("begin a TLS handshake: %w", err)
	}
	return to.sent, nil
}

// connect connects to a host through a gateway, and returns the connection when the server behind it has answered.
func connect(ctx context.Context, gateway, host string) (net.Conn, error) {
	first, err := hello(ctx, host)
	if err != nil {
		return nil, err
	}
	conn, err := (&net.Dialer{Timeout: answerTimeout}).DialContext(ctx, "tcp", gateway)
	if err != nil {
		return nil, fmt.Errorf("connect to the gateway: %w", err)
	}
	received := make([]byte, 1)
	err = conn.SetDeadline(time.Now().Add(answerTimeout))
	if err == nil {
		_, err = conn.Write(first)
	}
	if err == nil {
		_, err = io.ReadFull(conn, received)
	}
	if err == nil && received[0] != answer {
		err = fmt.Errorf("it sends %q", received)
	}
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("%s does not answer: %w", host, err)
	}
	return conn, nil
}

// answers returns the time until a new connection to a host answers.
func answers(ctx context.Context, gateway, host string) (time.Duration, error) {
	began := time.Now()
	conn, err := connect(ctx, gateway, host)
	if err != nil {
		return 0, err
	}
	return time.Since(began), conn.Close()
}
