package tunnel

import (
	"io"
	"net"
	"testing"

	"github.com/trellis-k8s/trellis/test/kit"
)

// BenchmarkTunnel compares connections through the tunnel with direct ones: the time of a short question and answer, of a new connection with one,
// and of the transfer of 1 MiB.
func BenchmarkTunnel(b *testing.B) {
	w := newWorld(b)
	server, client := w.serve("", ""), w.files(w.authority, clientName)
	echo := w.echo()
	source := w.target(func(conn net.Conn) {
		part := make([]byte, 1<<20)
		for {
			if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
				return
			}
			if _, err := conn.Write(part); err != nil {
				return
			}
		}
	})
	w.agent(w.authority, agentName, map[string]string{echo: echo, source: source}, server.agents)
	w.awaitReady("the server has an agent", server.Ready)
	direct := func(address string) (net.Conn, error) { return net.Dial("tcp", address) }
	tunneled := func(address string) (net.Conn, error) { return w.dial(server, client, address) }
	for _, each := range []struct {
		name string
		dial func(string) (net.Conn, error)
	}{{"direct", direct}, {"tunnel", tunneled}} {
		open := func(address string) net.Conn {
			conn, err := each.dial(address)
			kit.Must(b, err)
			return conn
		}
		b.Run("roundtrip/"+each.name, func(b *testing.B) {
			conn := open(echo)
			defer conn.Close()
			for b.Loop() {
				if why := says(conn, "hello"); why != "" {
					b.Fatal(why)
				}
			}
		})
		b.Run("connect/"+each.name, func(b *testing.B) {
			for b.Loop() {
				conn := open(echo)
				if why := says(conn, "hello"); why != "" {
					b.Fatal(why)
				}
				_ = conn.Close()
			}
		})
		b.Run("transfer/"+each.name, func(b *testing.B) {
			b.SetBytes(1 << 20)
			conn := open(source)
			defer conn.Close()
			for b.Loop() {
				_, err := conn.Write([]byte{1})
				kit.Must(b, err)
				_, err = io.CopyN(io.Discard, conn, 1<<20)
				kit.Must(b, err)
			}
		})
	}
}
