package trouble

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/inprocess"
)

// restarts kills the API server of a resource-manager while users change everything through another one, and
// starts it again.
func restarts(t *testing.T, server *controlplane.APIServer) {
	t.Helper()
	w := newWorld(t)
	w.startManager(func(r *inprocess.ResourceManager) { r.Source, r.Target = server.Config(), server.Config() })
	s := w.newStorm(4, 3, 10)
	s.begin()
	s.step()
	kit.Must(t, server.Kill())
	s.rage(20, 20*time.Millisecond)
	kit.Must(t, server.Restart(t.Context()))
	s.rage(5, 20*time.Millisecond)
	s.calm()
}

// TestStartBesideAPIServers starts the program before the API servers respond. The program must wait for them.
func TestStartBesideAPIServers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("set", configMap("one", "1"))
	source, target := newProxy(t, w.controlPlane.Config()), newProxy(t, w.controlPlane.Config())
	for _, p := range []*proxy{source, target} {
		var asked atomic.Int64
		p.breakWith(func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch asked.Add(1) {
				case 1:
					panic(http.ErrAbortHandler)
				case 2:
					answer(w, http.StatusServiceUnavailable, "ServiceUnavailable")
				default:
					next.ServeHTTP(w, r)
				}
			})
		})
	}
	program := w.startBinary(w.kubeconfigOf(source.config()), w.kubeconfigOf(target.config()), noElection)
	w.eventuallyHolds("in the end")
	if waits := strings.Count(program.Written.String(), "Waiting for the API server"); waits != 4 {
		t.Errorf("the program waited %d times, want 4, output:\n%s", waits, program.Written)
	}
}

// TestDiskFull fills the quota of etcd, so that it rejects writes, and makes room again. Afterwards the objects
// declared before must exist, and changes made in between must be corrected.
func TestDiskFull(t *testing.T) {
	takesLong(t) // starts its own control plane
	t.Parallel()
	cp, err := controlplane.Start(t.Context(), controlplane.Options{EtcdArgs: map[string][]string{"quota-backend-bytes": {fmt.Sprint(32 << 20)}}})
	kit.Must(t, err)
	t.Cleanup(func() { kit.Must(t, cp.Stop()) })
	w := newWorldOn(t, cp)
	w.startManager()
	w.declare("set", configMap("one", "1"), service("two", 1), configMap("deleted", "1"))
	w.declare("goes", configMap("goes", "1"))
	w.eventuallyHolds("at first")
	before := w.uid(configMap("one", ""))

	store := etcd{t, cp.EtcdURL()}
	fillers := kit.NewNamespace(t, w.client, "fillers", nil)
	for i := 0; len(store.alarms()) == 0; i++ {
		filler := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: fillers, Name: fmt.Sprint("filler-", i)},
			Data:       map[string]string{"filler": strings.Repeat("x", 1<<20-1000)},
		}
		if err := w.client.Create(t.Context(), filler); err != nil {
			t.Logf("filled by %d MiB: %v", i, err)
		}
	}
	w.eventuallyRefused()
	w.delete(configMap("deleted", "")) // etcd accepts only deletions
	for i := range 40 {
		filler := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: fillers, Name: fmt.Sprint("filler-", i)}}
		kit.Must(t, client.IgnoreNotFound(w.client.Delete(t.Context(), filler)))
	}
	kit.Eventually(t, "etcd has room again", func() string {
		store.makeRoom()
		return kit.TextOf(w.probe())
	})
	w.undeclare("goes")
	w.declare("set", configMap("one", "2"), service("two", 2), configMap("deleted", "1"))
	w.eventuallyHolds("with room again")
	if after := w.uid(configMap("one", "")); after != before {
		t.Errorf("the UID is %s, was %s", after, before)
	}
}

// eventuallyRefused waits until etcd rejects writes.
func (w *world) eventuallyRefused() {
	w.Helper()
	kit.EventuallyTrue(w, "writes fail", func() bool { return w.probe() != nil })
}

// probe returns an error if writes fail.
func (w *world) probe() error {
	return w.client.Create(w.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, GenerateName: "probe-"}})
}
