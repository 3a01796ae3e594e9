package controlplane

import (
	"fmt"
	"net"
)

// FreePort returns a port of loopback that nobody listens on, for a program beside the control plane.
func FreePort() (int, error) {
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return 0, fmt.Errorf("finding a free port: %w", err)
	}
	address, ok := listener.Addr().(*net.TCPAddr)
	if err := listener.Close(); err != nil || !ok {
		return 0, fmt.Errorf("finding a free port: %v: %w", listener.Addr(), err)
	}
	return address.Port, nil
}
