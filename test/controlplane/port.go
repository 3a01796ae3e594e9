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

// The ports that FreePort returns. Operating systems do not assign them to outgoing connections (Linux begins at 32768,
// others at 49152 as in RFC 6335), so that no connection takes the port before the program listens, or during a restart.
const (
	firstPort = 15000
	lastPort  = 29999
	portTries = 100
)

// taken are the ports that were tried. For returned ports, the value is the UDP socket that reserves them.
var taken sync.Map

// FreePort returns a free port of loopback for the control plane or a program next to it. It returns each port only once.
// It holds the UDP port of the same number until this process ends, so that tests in other processes do not choose it
// before the program listens.
func FreePort() (int, error) {
	var errs []error
	for range portTries {
		port := firstPort + rand.IntN(lastPort-firstPort+1) //nolint:gosec // not secret, but different from that of a concurrent process
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
			taken.Store(port, kept) // an unreferenced socket would be closed
			return port, nil
		}
		errs = append(errs, err, kept.Close())
	}
	return 0, fmt.Errorf("no free port from %d to %d in %d tries: %w", firstPort, lastPort, portTries, errors.Join(errs...))
}

// freeURL returns the URL of a server on a free port.
func freeURL() (*url.URL, error) {
	port, err := FreePort()
	return &url.URL{Scheme: "http", Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}, err
}
