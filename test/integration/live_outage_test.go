package integration

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// TestLiveShortWatches ends every watch after a second. Drift is still corrected, and no object is deleted or
// recreated.
func TestLiveShortWatches(t *testing.T) {
	f := newFixture(t)
	p := f.newProxy()
	p.breakWith(shortWatches(time.Second))
	f.startIn([]string{f.namespace}, onlyEvents+p.asTarget())
	var documents []string
	for i := range 10 {
		documents = append(documents, f.configMap(fmt.Sprintf("map-%d", i), "1"))
	}
	f.manage("set", append(documents, f.here(driftKinds()["Service"].named("x")))...)
	f.eventuallySucceeded("set")
	before := f.uidsOf(documents...)
	p.forget()
	for i, document := range documents {
		begun := p.watchesOf("configmaps")
		f.eventuallyRestored(fmt.Sprintf("map-%d", i), "1")
		if i%3 == 0 {
			must(t, f.client.Delete(f.ctx, f.object(document)))
			f.eventually("the ConfigMap is recreated", func() bool { return f.liveConfigMap(fmt.Sprintf("map-%d", i)) != nil })
			before[i] = f.uidsOf(document)[0]
		}
		f.eventually("the watch is started again", func() bool { return p.watchesOf("configmaps") > begun })
	}
	f.eventuallySucceeded("set")
	for i, uid := range f.uidsOf(documents...) {
		if uid != before[i] {
			t.Errorf("map-%d was recreated", i)
		}
	}
	for _, question := range p.single() {
		if question.method == http.MethodDelete {
			t.Errorf("unexpected request: %s", question)
		}
	}
}

// TestLiveExpiredVersion makes the API server report, in both possible ways, that the resource versions of the
// watches have expired. Changes made in the meantime are corrected.
func TestLiveExpiredVersion(t *testing.T) {
	const status = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version","reason":"Expired","code":410}`
	for name, answer := range map[string]func(http.ResponseWriter){
		"as an answer": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusGone)
			fmt.Fprint(w, status)
		},
		"as an event": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"type":"ERROR","object":%s}`, status)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			p := f.newProxy()
			f.startIn([]string{f.namespace}, onlyEvents+p.asTarget())
			f.manage("set", f.configMap("changed", "1"), f.configMap("deleted", "1"), f.configMap("same", "1"))
			f.eventuallySucceeded("set")
			f.eventuallyRestored("changed", "1") // a watch without events is not resumed
			f.eventuallySucceeded("set")
			same := f.liveConfigMap("same")

			var gone atomic.Bool
			changed := make(chan struct{})
			p.breakWith(func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					goesOn := isWatch(r) && r.URL.Query().Get("sendInitialEvents") == "" && strings.HasSuffix(r.URL.Path, "/configmaps")
					if goesOn && !gone.Load() {
						<-changed
						gone.Store(true)
						answer(w)
						return
					}
					next.ServeHTTP(w, r)
				})
			})
			p.cutWatches()
			f.patch(f.configMap("changed", ""), "somebody", `{"data":{"key":"2"}}`)
			must(t, f.client.Delete(f.ctx, f.object(f.configMap("deleted", ""))))
			close(changed)
			f.eventually("all changes are corrected", func() bool {
				return f.liveConfigMap("changed").Data["key"] == "1" && f.liveConfigMap("deleted") != nil
			})
			if !gone.Load() {
				t.Error("no watch got the error that its version has expired")
			}
			f.eventuallyRestored("changed", "1")
			if after := f.liveConfigMap("same"); after.ResourceVersion != same.ResourceVersion {
				t.Error("an unchanged object was written")
			}
		})
	}
}

// TestLiveOutage makes the API server of the target cluster unreachable for a while. Changes made in the meantime are
// corrected when it is reachable again.
func TestLiveOutage(t *testing.T) {
	f := newFixture(t)
	road := f.newRoad()
	f.startIn([]string{f.namespace}, onlyEvents+"targetClientConnection: {kubeconfig: "+road.kubeconfig+", qps: -1}\n")
	f.manage("set", f.configMap("changed", "1"), f.configMap("deleted", "1"), f.configMap("same", "1"), f.here(driftKinds()["Secret"].named("x")))
	f.eventuallySucceeded("set")
	same := f.liveConfigMap("same")

	road.block()
	f.patch(f.configMap("changed", ""), "somebody", `{"data":{"key":"2"}}`)
	must(t, f.client.Delete(f.ctx, f.object(f.configMap("deleted", ""))))
	f.eventually("several connections were attempted", func() bool { return road.refused.Load() >= 10 })
	f.wantConfigMap("changed", "2")
	road.open()
	f.eventually("all changes are corrected", func() bool {
		return f.liveConfigMap("changed").Data["key"] == "1" && f.liveConfigMap("deleted") != nil
	})
	f.eventuallySucceeded("set")
	if after := f.liveConfigMap("same"); after.ResourceVersion != same.ResourceVersion {
		t.Error("an unchanged object was written")
	}
	f.eventuallyRestored("changed", "1")
	f.eventuallyRestored("same", "1")
}

// road forwards connections to the API server, or refuses them.
type road struct {
	kubeconfig, api string
	refused         atomic.Int64

	mu      sync.Mutex
	blocked bool
	used    []net.Conn
}

func (f *fixture) newRoad() *road {
	f.Helper()
	address, _, err := rest.DefaultServerUrlFor(shared.Get(f).Config())
	must(f, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(f, err)
	r := &road{api: address.Host}
	f.Cleanup(func() {
		_ = listener.Close()
		r.block()
	})
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go r.lead(conn)
		}
	}()
	r.kubeconfig = f.kubeconfig(func(_ *clientcmdapi.AuthInfo, cluster *clientcmdapi.Cluster) {
		cluster.Server = (&url.URL{Scheme: "https", Host: listener.Addr().String()}).String()
	})
	return r
}

func (r *road) lead(conn net.Conn) {
	onward, err := net.Dial("tcp", r.api)
	if err != nil || !r.take(conn, onward) {
		r.refused.Add(1)
		_ = conn.Close()
		return
	}
	go func() {
		_, _ = io.Copy(onward, conn)
		_ = onward.Close()
	}()
	_, _ = io.Copy(conn, onward)
	_ = conn.Close()
}

// take registers connections, unless the road is blocked.
func (r *road) take(conns ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.blocked {
		r.used = append(r.used, conns...)
	}
	return !r.blocked
}

func (r *road) block() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.blocked = true
	for _, conn := range r.used {
		_ = conn.Close()
	}
	r.used = nil
}

func (r *road) open() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.blocked = false
}
