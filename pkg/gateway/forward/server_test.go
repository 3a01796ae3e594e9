package forward

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/trellis-k8s/trellis/test/kit"
)

const local = "127.0.0.1:0"

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", local)
	kit.Must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// start runs a server whose connections lead where the function says. It returns its address.
func start(t *testing.T, limits Limits, open Opener) (*Server, string) {
	t.Helper()
	server, listener := NewServer(logr.Discard(), NewMetrics(prometheus.NewRegistry()), limits), listen(t)
	go func() { _ = server.Serve(context.Background(), listener, open) }()
	t.Cleanup(func() { server.Close() })
	return server, listener.Addr().String()
}

// to returns an opener that leads to addresses.
func to(addresses ...string) Opener {
	return func(context.Context, net.Conn) (Destination, error) {
		return Destination{Name: "target", Addresses: addresses}, nil
	}
}

func dial(t *testing.T, address string) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	kit.Must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	kit.Must(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
	client, is := conn.(*net.TCPConn)
	if !is {
		t.Fatalf("a connection is a %T", conn)
	}
	return client
}

// echo serves connections that return what they receive; after its end, a last line.
func echo(t *testing.T) string {
	t.Helper()
	listener := listen(t)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
				_, _ = io.WriteString(conn, "end")
			}()
		}
	}()
	return listener.Addr().String()
}

// closed returns an address that refuses connections.
func closed(t *testing.T) string {
	t.Helper()
	listener := listen(t)
	_ = listener.Close()
	return listener.Addr().String()
}

// says sends a text and reads as many bytes.
func says(conn net.Conn, text string) string {
	answer := make([]byte, len(text))
	if _, err := io.WriteString(conn, text); err != nil {
		return err.Error()
	}
	if _, err := io.ReadFull(conn, answer); err != nil {
		return err.Error()
	}
	return string(answer)
}

// ends returns why a connection has not ended.
func ends(conn net.Conn) string {
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		return "something is received"
	} else if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
		return "it is open"
	}
	return ""
}

// TestForward checks that everything arrives, also after one side has ended its direction, and that an address that refuses connections is skipped.
func TestForward(t *testing.T) {
	server, address := start(t, Limits{}, to(closed(t), echo(t)))
	conn := dial(t, address)
	sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<18)
	go func() {
		_, _ = conn.Write(sent)
		_ = conn.CloseWrite()
	}()
	received, err := io.ReadAll(conn)
	kit.Must(t, err)
	if !bytes.Equal(received, append(sent, "end"...)) {
		t.Errorf("received %d bytes, want %d", len(received), len(sent)+3)
	}
	kit.Eventually(t, "the connection is counted", func() string {
		if count := testutil.ToFloat64(server.metrics.connections.WithLabelValues(resultForwarded)); count != 1 {
			return "the metric is wrong"
		}
		return ""
	})
	if count := testutil.ToFloat64(server.metrics.bytes.WithLabelValues(directionIn)); count != float64(len(sent)) {
		t.Errorf("%f bytes are counted", count)
	}
}

// TestRefused checks which result connections have that lead nowhere.
func TestRefused(t *testing.T) {
	for result, open := range map[string]Opener{
		resultNoRoute:     func(context.Context, net.Conn) (Destination, error) { return Destination{}, ErrNoRoute },
		resultInvalid:     func(context.Context, net.Conn) (Destination, error) { return Destination{}, ErrInvalid },
		resultNoEndpoint:  to(),
		resultUnreachable: to(closed(t), closed(t)),
	} {
		server, address := start(t, Limits{}, open)
		if why := ends(dial(t, address)); why != "" {
			t.Errorf("%s: %s", result, why)
		}
		kit.Eventually(t, result, func() string {
			if testutil.ToFloat64(server.metrics.connections.WithLabelValues(result)) != 1 {
				return "it is not counted"
			}
			return ""
		})
	}
}

// TestLimits checks that one destination, and clients that send nothing, cannot use up all connections.
func TestLimits(t *testing.T) {
	target, silent := echo(t), make(chan struct{})
	defer close(silent)
	open := func(_ context.Context, conn net.Conn) (Destination, error) {
		name := make([]byte, 1)
		if _, err := conn.Read(name); err != nil {
			return Destination{}, err
		}
		return Destination{Name: string(name), Addresses: []string{target}}, nil
	}
	_, address := start(t, Limits{Connections: 4, Opening: 2, PerDestination: 2}, open)
	reached := func(name string) *net.TCPConn {
		conn := dial(t, address)
		_, _ = io.WriteString(conn, name)
		if answer := says(conn, "x"); answer != "x" {
			t.Errorf("a connection to %s is refused: %s", name, answer)
		}
		return conn
	}
	first := reached("a")
	reached("a")
	third := dial(t, address)
	_, _ = io.WriteString(third, "a")
	if why := ends(third); why != "" {
		t.Errorf("a third connection to a: %s", why)
	}
	reached("b")
	_ = first.Close()
	kit.Eventually(t, "a has room for another connection", func() string {
		conn := dial(t, address)
		_, _ = io.WriteString(conn, "a")
		answer := says(conn, "x")
		if answer != "x" {
			return answer
		}
		_ = conn.Close()
		return ""
	})
	dial(t, address)
	dial(t, address)
	kit.Eventually(t, "too many connections send nothing", func() string { return ends(dial(t, address)) })
}

// TestDrain checks that a connection that is quiet ends, and that one that is not is cut off at the end of the time only.
func TestDrain(t *testing.T) {
	server, address := start(t, Limits{}, to(echo(t)))
	quiet, busy := dial(t, address), dial(t, address)
	for _, conn := range []net.Conn{quiet, busy} {
		if answer := says(conn, "x"); answer != "x" {
			t.Fatal(answer)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cut := make(chan int, 1)
	go func() { cut <- server.Drain(ctx, Quiet) }()
	over := make(chan string, 1)
	go func() { over <- ends(quiet) }()
	for waiting := true; waiting; {
		if answer := says(busy, "y"); answer != "y" {
			t.Fatalf("a busy connection is cut off: %s", answer)
		}
		select {
		case why := <-over:
			if why != "" {
				t.Fatal(why)
			}
			waiting = false
		case <-time.After(10 * time.Millisecond):
		}
	}
	cancel()
	if count := <-cut; count != 1 {
		t.Errorf("%d connections were cut off", count)
	}
	if answer := says(busy, "z"); answer == "z" {
		t.Error("a connection is still open")
	}
	if why := ends(dial(t, address)); why != "" {
		t.Errorf("a new connection: %s", why)
	}
}

// TestGreet checks that an address is greeted before anything is sent to it, and that one that refuses is skipped.
func TestGreet(t *testing.T) {
	target := echo(t)
	_, address := start(t, Limits{}, func(context.Context, net.Conn) (Destination, error) {
		refused := 0
		return Destination{Name: "target", Addresses: []string{target, target}, Answer: []byte("hello"), Received: []byte("first"), Greet: func(conn net.Conn) error {
			if refused++; refused == 1 {
				return errors.New("refused")
			}
			if answer := says(conn, "greeting"); answer != "greeting" {
				return errors.New(answer)
			}
			return nil
		}}, nil
	})
	conn := dial(t, address)
	kit.Must(t, conn.CloseWrite())
	received, err := io.ReadAll(conn)
	if err != nil || string(received) != "hellofirstend" {
		t.Errorf("received %q, %v", received, err)
	}
}
