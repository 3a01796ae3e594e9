package trouble

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
)

// TestLaggingAPIServer makes a resource-manager read from an API server whose watches of etcd lag behind, and
// write to another one.
func TestLaggingAPIServer(t *testing.T) {
	cp := shared.Get(t)
	newClient(t, cp)
	lagging := newLaggingEtcd(t, cp.EtcdURL())
	behind, err := cp.StartAPIServer(t.Context(), "lagging", lagging.URL, nil)
	kit.Must(t, err)
	t.Cleanup(func() { kit.Must(t, behind.Kill()) })

	t.Run("now and then", func(t *testing.T) { lagsNowAndThen(t, behind, lagging) })
	t.Run("compacted", func(t *testing.T) { forgets(t, behind, lagging) })
	t.Run("restarted", func(t *testing.T) { restarts(t, behind) })
	t.Run("at the start", func(t *testing.T) { startsBehind(t, behind, lagging) })
}

// lagsNowAndThen makes the API server lag behind repeatedly while users change everything.
func lagsNowAndThen(t *testing.T, behind *controlplane.APIServer, lagging *laggingEtcd) {
	t.Helper()
	w := newWorld(t)
	p := newProxy(t, w.controlPlane.Config())
	p.readFrom(behind.Config())
	w.startManager(throughProxy(p, p))
	s := w.newStorm(2, 3, 10)
	s.begin()
	for range 4 {
		lagging.gate.close()
		s.rage(12, 100*time.Millisecond)
		lagging.gate.open()
		s.rage(3, 100*time.Millisecond)
	}
	s.calm()
}

// forgets compacts revisions in etcd that the API server has not seen yet. The API server lists its objects again,
// and answers watches that resume from an earlier version with 410 Gone.
func forgets(t *testing.T, behind *controlplane.APIServer, lagging *laggingEtcd) {
	t.Helper()
	w := newWorld(t)
	p := newProxy(t, w.controlPlane.Config())
	p.readFrom(behind.Config())
	var gone atomic.Int64
	p.disturb(func(*http.Request) stream {
		return stream{sees: func(event []byte) {
			if bytes.Contains(event, []byte("too old resource version")) {
				gone.Add(1)
			}
		}}
	})
	w.startManager(throughProxy(p, p))
	s := w.newStorm(3, 3, 10)
	s.begin()
	for range 3 {
		lagging.gate.close()
		s.rage(12, 20*time.Millisecond)
		etcd{t, w.controlPlane.EtcdURL()}.compact()
		lagging.cut()
		lagging.gate.open()
		s.rage(3, 20*time.Millisecond)
	}
	s.calm()
	if gone.Load() == 0 {
		t.Error("no watch got the error 410 Gone")
	}
}

// startsBehind starts a resource-manager whose API server lags behind. The previous process's changes must be
// neither undone nor lost.
func startsBehind(t *testing.T, behind *controlplane.APIServer, lagging *laggingEtcd) {
	t.Helper()
	w := newWorld(t)
	first := w.startManager()
	stays, leaves, comes := configMap("stays", "1"), configMap("leaves", "1"), configMap("comes", "1")
	w.declare("set", stays, leaves)
	w.eventuallyHolds("at first")
	uid := w.uid(stays)

	p := newProxy(t, w.controlPlane.Config())
	p.readFrom(behind.Config())
	var answered atomic.Int64
	p.breakWith(func(next http.Handler) http.Handler {
		// Older API servers reject streamed lists. Lists that fill caches may then be as old as the server's cache.
		return refuseStreamedLists(countingLists("managedresources", &answered, next))
	})
	w.eventuallyCached(behind, "set")
	lagging.gate.close()
	changed := configMap("stays", "2")
	w.note("set", []string{changed, comes})
	w.secret("second", changed, comes)
	w.refer("set", "second")
	w.eventuallyHolds("before the restart")
	first()
	version := w.live(changed).GetResourceVersion()
	w.startManager(throughProxy(p, nil))
	kit.Eventually(t, "the cache is filled from etcd", func() string { return atLeast(2, int(answered.Load())) })
	lagging.gate.open()
	w.eventuallyHolds("in the end")
	if obj := w.live(changed); string(obj.GetUID()) != uid || obj.GetResourceVersion() != version {
		t.Errorf("the up-to-date object was written: UID %s, resourceVersion %s, was UID %s, resourceVersion %s", obj.GetUID(), obj.GetResourceVersion(), uid, version)
	}
}

// eventuallyCached waits until the cache of an API server has the current state of a ManagedResource.
func (w *world) eventuallyCached(server *controlplane.APIServer, name string) {
	w.Helper()
	c, err := client.New(server.Config(), client.Options{Scheme: w.client.Scheme(), Mapper: w.client.RESTMapper()})
	kit.Must(w, err)
	kit.Eventually(w, "the API server has "+name+" in its cache", func() string {
		list := &resourcesv1alpha1.ManagedResourceList{}
		fromCache := &client.ListOptions{Namespace: w.namespace, Raw: &metav1.ListOptions{ResourceVersion: "0"}}
		kit.Must(w, c.List(w.Context(), list, fromCache))
		version := w.read(name).ResourceVersion
		for _, item := range list.Items {
			if item.Name == name && item.ResourceVersion == version {
				return ""
			}
		}
		return "it has an older version"
	})
}

// countingLists counts the answered lists of a resource.
func countingLists(resource string, answered *atomic.Int64, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r)
		if !isWatch(r) && strings.HasSuffix(r.URL.Path, "/"+resource) {
			answered.Add(1)
		}
	})
}

// refuseStreamedLists behaves like an API server that does not support streamed lists.
func refuseStreamedLists(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("sendInitialEvents") == "" {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnprocessableEntity)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"Invalid","code":422}`)
	})
}
