package controlplane

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"strconv"
	"sync"
)

// Ports that FreePort returns. Systems give none of them to connections (Linux begins at 32768, others at 49152 as RFC 6335 says), so that
// no connection has the port by the time the program listens, or while it is restarted.
const (
	firstPort = 15000
	lastPort  = 29999
	portTries = 100
)

// taken are the ports that were tried, those that were returned with the UDP socket that keeps them.
var taken sync.Map

// FreePort returns a free port of loopback, for the control plane or a program beside it, and each port once. Until this process ends, it keeps the UDP
// port of the same number, so that tests in other processes do not choose it before the program listens.
func FreePort() (int, error) {
	var errs []error
	for range portTries {
		port := firstPort + rand.IntN(lastPort-firstPort+1) //nolint:gosec // not secret, but other than that of a process beside
		if _, was := taken.LoadOrStore(port, true); was {
			continue
		}
		kept, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
		if err != nil {
			errs = append(errs, err)
			continue
		}
		listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
		if err == nil {
			err = listener.Close()
		}
		if err == nil {
			taken.Store(port, kept) // it is closed when nothing refers to it
			return port, nil
		}
		errs = append(errs, err, kept.Close())
	}
	return 0, fmt.Errorf("no free port from %d to %d in %d tries: %w", firstPort, lastPort, portTries, errors.Join(errs...))
}

// freeURL returns the URL of a server that may listen on a free port.
func freeURL() (*url.URL, error) {
	port, err := FreePort()
	return &url.URL{Scheme: "http", Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}, err
}
