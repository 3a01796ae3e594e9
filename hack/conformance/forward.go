package main

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
)

// forward serves connections to a server, for example "https://10.0.0.1", on a local port. It returns the local URL and a function that
// ends it.
func forward(server string) (local string, stop func() error, err error) {
	parsed, err := url.Parse(server)
	if err != nil {
		return "", nil, fmt.Errorf("the server %q: %w", server, err)
	}
	remote := parsed.Host
	if parsed.Port() == "" {
		remote = net.JoinHostPort(parsed.Hostname(), "443")
	}
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return "", nil, fmt.Errorf("forwarding connections to %s: %w", remote, err)
	}
	go func() {
		for {
			connection, err := listener.AcceptTCP()
			if err != nil {
				return // closed
			}
			go serve(connection, remote)
		}
	}()
	return "https://" + listener.Addr().String(), listener.Close, nil
}

// serve copies in both directions until both ends have closed theirs.
func serve(client *net.TCPConn, remote string) {
	defer client.Close() //nolint:errcheck // the peer is gone
	address, err := net.ResolveTCPAddr("tcp", remote)
	if err != nil {
		return
	}
	server, err := net.DialTCP("tcp", nil, address)
	if err != nil {
		return
	}
	defer server.Close() //nolint:errcheck // the peer is gone
	var both sync.WaitGroup
	for _, direction := range []struct{ from, to *net.TCPConn }{{client, server}, {server, client}} {
		both.Go(func() {
			_, _ = io.Copy(direction.to, direction.from)
			_ = direction.to.CloseWrite()
		})
	}
	both.Wait()
}
