package controlplane

import (
	"net"
	"runtime"
	"slices"
	"strconv"
	"testing"
)

// TestFreePort requests many ports while other sockets listen on some of them.
func TestFreePort(t *testing.T) {
	var ports []int
	for range 100 {
		port, err := FreePort()
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(ports, port) || port < firstPort || port > lastPort {
			t.Errorf("got port %d after %v", port, ports)
		}
		ports = append(ports, port)
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			t.Error(err)
			continue
		}
		t.Cleanup(func() { _ = listener.Close() })
	}
	runtime.GC()
	for _, port := range ports { // as a test in another process would
		if kept, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			_ = kept.Close()
			t.Errorf("port %d is not kept", port)
		}
	}
}
