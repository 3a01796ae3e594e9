// Package nodeproxy forwards connections of clients on a node to the API server of its cluster, through the gateway of the seed. Clients in the
// cluster connect to an address, and name no host that a gateway knows. So the proxy names it, in a request with the method CONNECT.
package nodeproxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/trellis-k8s/trellis/pkg/gateway/forward"
)

// mostResponse is the most bytes of the head of a response.
const mostResponse = 8 << 10

// Server is where connections lead.
type Server struct {
	// Gateway is the host and port at which a gateway accepts requests with the method CONNECT.
	Gateway string
	// Host is the host and port of the API server for the gateway.
	Host string
	// Destination is the header X-Gardener-Destination, by which the gateways of Istio find the API server.
	Destination string
}

// Open is the opener of all connections. It reads nothing of them.
func (s Server) Open(context.Context, net.Conn) (forward.Destination, error) {
	return forward.Destination{Name: s.Host, Addresses: []string{s.Gateway}, Greet: s.greet}, nil
}

// greet asks a gateway to connect to the API server. The API server sends nothing before the client has, so that nothing but the response is read.
func (s Server) greet(conn net.Conn) error {
	if _, err := fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\nX-Gardener-Destination: %s\r\n\r\n", s.Host, s.Host, s.Destination); err != nil {
		return err
	}
	reader := bufio.NewReader(io.LimitReader(conn, mostResponse))
	response, err := http.ReadResponse(reader, &http.Request{Method: http.MethodConnect})
	if err != nil {
		return fmt.Errorf("read the response of the gateway: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the gateway answers a request for %s with the status %s", s.Host, response.Status)
	}
	if reader.Buffered() > 0 {
		return fmt.Errorf("the gateway sends more than its response")
	}
	return nil
}
