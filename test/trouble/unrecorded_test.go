package trouble

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/test/kit"
)

// TestRevertOfUnrecordedChange changes a manifest from A to B, lets the resource-manager apply B without recording
// that in the status, and changes the manifest back to A. Both have the same fields, so that the field owners do
// not show which of them was applied.
func TestRevertOfUnrecordedChange(t *testing.T) {
	t.Parallel()
	for name, restarted := range map[string]bool{"the same process": false, "another process": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			source := newProxy(t, w.controlPlane.Config())
			stop := w.startManager(throughProxy(source, nil))
			w.declare("set", configMap("one", "a"))
			w.eventuallyHolds("at A")

			refused := &atomic.Int64{}
			source.breakWith(refusing("/managedresources/set/status", refused))
			w.declare("set", configMap("one", "b"))
			kit.EventuallyTrue(t, "B is applied", func() bool { return w.has(configMap("one", "b")) })
			kit.EventuallyTrue(t, "the update of its status is refused", func() bool { return refused.Load() > 0 })
			if restarted {
				stop()
			}
			w.declare("set", configMap("one", "a"))
			source.breakWith(nil)
			if restarted {
				w.startManager()
			}
			w.eventuallyHolds("back at A")
		})
	}
}

// refusing refuses the writes of one object.
func refusing(path string, refused *atomic.Int64) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPatch || !strings.HasSuffix(r.URL.Path, path) {
				next.ServeHTTP(w, r)
				return
			}
			refused.Add(1)
			http.Error(w, "refused by the test", http.StatusForbidden)
		})
	}
}

// has reports whether the data of a ConfigMap equals that of a manifest.
func (w *world) has(manifest string) bool {
	w.Helper()
	wanted := w.parse(manifest)
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(wanted.GroupVersionKind())
	kit.Must(w, w.client.Get(w.Context(), client.ObjectKeyFromObject(wanted), live))
	return within(wanted.Object["data"], live.Object["data"])
}
