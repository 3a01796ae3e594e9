package trouble

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/inprocess"
)

// longOutage is how long an API server is unavailable if the flag -trouble.long is set.
const longOutage = 3 * time.Minute

// TestOutage makes the API server of the target cluster unavailable for a while, in several ways, while a user
// changes an object there. It prints how long after its return the drift is corrected, by an event of its watch
// alone.
func TestOutage(t *testing.T) {
	for name, begin := range map[string]func(w *world, r *inprocess.ResourceManager) outage{
		"connections are refused": refusedConnections,
		"429":                     tooManyRequests(nil),
		"429 with Retry-After":    tooManyRequests(http.Header{"Retry-After": {"1"}}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var api outage
			w.startManager(func(r *inprocess.ResourceManager) { api = begin(w, r) })
			one := configMap("one", "1")
			w.declare("set", one, service("two", 1))
			w.eventuallyHolds("at first")
			w.eventuallySays("set", "ResourcesApplied", isTrue)

			api.begin()
			w.patch(one, `{"data":{"key":"2"}}`)
			if *long {
				<-time.After(longOutage)
			} else {
				kit.EventuallyTrue(t, "requests are retried", func() bool { return api.refused.Load() >= 20 })
			}
			api.end()
			returned := time.Now()
			kit.Eventually(t, "drift is corrected", func() string {
				value, _, _ := unstructured.NestedString(w.live(one).Object, "data", "key")
				if value == "1" {
					return ""
				}
				return "the value is " + value
			})
			t.Logf("drift was corrected %s after the API server returned; it refused %d requests", time.Since(returned).Round(10*time.Millisecond), api.refused.Load())
		})
	}
}

// outage is a way in which an API server is unavailable.
type outage struct {
	begin, end func()
	refused    *atomic.Int64
}

// tooManyRequests answers every request with 429.
func tooManyRequests(header http.Header) func(*world, *inprocess.ResourceManager) outage {
	return func(w *world, r *inprocess.ResourceManager) outage {
		target, refused := newProxy(w.T, r.Target), &atomic.Int64{}
		r.Target = target.config()
		answer := http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
			refused.Add(1)
			for key, values := range header {
				answer.Header()[key] = values
			}
			http.Error(answer, "too many requests", http.StatusTooManyRequests)
		})
		return outage{refused: refused, end: func() { target.breakWith(nil) }, begin: func() {
			target.breakWith(func(http.Handler) http.Handler { return answer })
			target.cutWatches()
		}}
	}
}

// refusedConnections closes the address of the API server.
func refusedConnections(w *world, r *inprocess.ResourceManager) outage {
	address, _, err := rest.DefaultServerUrlFor(r.Target)
	kit.Must(w, err)
	door := &door{TB: w.T, onward: address.Host}
	door.open()
	w.Cleanup(door.shut)
	refused := &atomic.Int64{}
	r.Target = rest.CopyConfig(r.Target)
	r.Target.Host = "https://" + door.address
	r.Target.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if errors.Is(err, syscall.ECONNREFUSED) {
			refused.Add(1)
		}
		return conn, err
	}
	return outage{begin: door.shut, end: door.open, refused: refused}
}

// door forwards connections while it is open. While it is shut, its address refuses them.
type door struct {
	testing.TB
	onward, address string

	mu       sync.Mutex
	listener net.Listener
	used     []net.Conn
}

// open listens, each time at the same address.
func (d *door) open() {
	d.mu.Lock()
	defer d.mu.Unlock()
	address := d.address
	if address == "" {
		address = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", address)
	kit.Must(d, err)
	d.listener, d.address = listener, listener.Addr().String()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go d.lead(conn)
		}
	}()
}

// lead copies data to the API server and back.
func (d *door) lead(conn net.Conn) {
	onward, err := net.Dial("tcp", d.onward)
	if err != nil {
		_ = conn.Close()
		return
	}
	d.mu.Lock()
	d.used = append(d.used, conn, onward)
	d.mu.Unlock()
	go func() {
		_, _ = io.Copy(onward, conn)
		_ = onward.Close()
	}()
	_, _ = io.Copy(conn, onward)
	_ = conn.Close()
}

// shut closes the address and all connections.
func (d *door) shut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	_ = d.listener.Close()
	for _, conn := range d.used {
		_ = conn.Close()
	}
	d.used = nil
}
