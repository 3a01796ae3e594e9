// Package opening reads from the first bytes of a connection to which host it leads: from the server name in a TLS handshake, or from a request
// with the method CONNECT, both after an optional header of the PROXY protocol.
package opening

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"

	proxyproto "github.com/pires/go-proxyproto"

	"github.com/trellis-k8s/trellis/pkg/gateway/forward"
)

const (
	// mostHello is the most bytes until the end of the first message of a TLS handshake. crypto/tls accepts as many.
	mostHello = 64 << 10
	// mostRequest is the most bytes of the head of a request.
	mostRequest = 8 << 10
	// headerBuffer is enough for a header of the PROXY protocol.
	headerBuffer = 4 << 10
)

// connected is the answer to a request with the method CONNECT.
const connected = "HTTP/1.1 200 OK\r\n\r\n"

// Find returns the name of a destination for its limits and its addresses. The error is forward.ErrNoRoute for a host that no route leads to.
type Find func(ctx context.Context, host string) (name string, addresses []string, err error)

// TLS returns the opener of connections with TLS. header is set if they may start with a header of the PROXY protocol.
func TLS(find Find, header bool) forward.Opener {
	return func(ctx context.Context, conn net.Conn) (forward.Destination, error) {
		reader, err := afterHeader(conn, header)
		if err != nil {
			return forward.Destination{}, err
		}
		host, received, err := serverName(ctx, reader)
		if err != nil {
			return forward.Destination{}, err
		}
		name, addresses, err := find(ctx, host)
		return forward.Destination{Name: name, Addresses: addresses, Received: append(received, buffered(reader)...)}, err
	}
}

// Connect returns the opener of connections with a request with the method CONNECT, whose target is a host and the given port.
func Connect(find Find, port int, header bool) forward.Opener {
	return func(ctx context.Context, conn net.Conn) (forward.Destination, error) {
		reader, err := afterHeader(conn, header)
		if err != nil {
			return forward.Destination{}, err
		}
		limited := bufio.NewReader(io.LimitReader(reader, mostRequest))
		request, err := http.ReadRequest(limited)
		if err != nil {
			return forward.Destination{}, fmt.Errorf("%w: read a request: %w", forward.ErrInvalid, err)
		}
		host, at, err := net.SplitHostPort(request.Host)
		if request.Method != http.MethodConnect || err != nil || at != strconv.Itoa(port) {
			_, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			return forward.Destination{}, fmt.Errorf("%w: %s %q, want CONNECT to a host and the port %d", forward.ErrInvalid, request.Method, request.Host, port)
		}
		name, addresses, err := find(ctx, strings.ToLower(host))
		if err != nil || len(addresses) == 0 {
			_, _ = io.WriteString(conn, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		}
		return forward.Destination{
			Name: name, Addresses: addresses, Answer: []byte(connected), Received: append(buffered(limited), buffered(reader)...),
		}, err
	}
}

// afterHeader returns a reader of a connection that starts after the header of the PROXY protocol, if it is allowed and there is one.
func afterHeader(conn net.Conn, allowed bool) (*bufio.Reader, error) {
	reader := bufio.NewReaderSize(conn, headerBuffer)
	if !allowed {
		return reader, nil
	}
	if _, err := proxyproto.Read(reader); err != nil && !errors.Is(err, proxyproto.ErrNoProxyProtocol) {
		return nil, fmt.Errorf("%w: read the header of the PROXY protocol: %w", forward.ErrInvalid, err)
	}
	return reader, nil
}

// buffered returns the bytes that a reader has received, but that were not read from it.
func buffered(reader *bufio.Reader) []byte {
	rest, _ := reader.Peek(reader.Buffered())
	return bytes.Clone(rest)
}

// errRead ends a handshake once its first message is read.
var errRead = errors.New("the first message is read")

// serverName reads the first message of a TLS handshake (ClientHello). It returns the server name in lower case, and all bytes that it has read.
func serverName(ctx context.Context, reader io.Reader) (name string, received []byte, err error) {
	var bytesRead bytes.Buffer
	found := false
	err = tls.Server(readOnly{reader: io.TeeReader(io.LimitReader(reader, mostHello), &bytesRead)}, &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			name, found = strings.ToLower(hello.ServerName), true
			return nil, errRead
		},
	}).HandshakeContext(ctx)
	switch {
	case !found:
		return "", nil, fmt.Errorf("%w: read the first message of a TLS handshake: %w", forward.ErrInvalid, err)
	case name == "":
		return "", nil, fmt.Errorf("%w: the client sends no server name", forward.ErrInvalid)
	}
	return name, bytesRead.Bytes(), nil
}

// readOnly is a connection to which nothing is written.
type readOnly struct {
	net.Conn

	reader io.Reader
}

// Read implements [net.Conn].
func (r readOnly) Read(part []byte) (int, error) { return r.reader.Read(part) }

// Write implements [net.Conn].
func (readOnly) Write(part []byte) (int, error) { return len(part), nil }

// Close implements [net.Conn].
func (readOnly) Close() error { return nil }
