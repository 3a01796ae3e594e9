package trouble

import (
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/trellis-k8s/trellis/test/kit"
)

// elected enables leader election.
func (w *world) elected() string {
	return "leaderElection: {leaderElect: true, resourceNamespace: " + w.namespace + "}\n"
}

// holder returns the holder of the lease, or an empty string.
func (w *world) holder() string {
	w.Helper()
	lease := &coordinationv1.Lease{}
	err := w.client.Get(w.Context(), w.named("gardener-resource-manager"), lease)
	if !apierrors.IsNotFound(err) {
		kit.Must(w, err)
	}
	if err != nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// parked delays the responses to writes of one object while its gate is shut.
func parked(path string, shut *gate, waiting *atomic.Int64) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPatch || !strings.HasSuffix(r.URL.Path, path) {
				next.ServeHTTP(w, r)
				return
			}
			recorded := httptest.NewRecorder()
			next.ServeHTTP(recorded, r)
			waiting.Add(1)
			shut.wait(r.Context(), nil)
			maps.Copy(w.Header(), recorded.Header())
			w.WriteHeader(recorded.Code)
			_, _ = w.Write(recorded.Body.Bytes())
		})
	}
}

// TestPausedLeader stops the process of a leader in the middle of a reconciliation, until another leader has made
// changes. When the process continues, it must not write any more, must leave the lease to its holder, and must
// exit.
func TestPausedLeader(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	through := newProxy(t, w.controlPlane.Config())
	kubeconfig := w.kubeconfigOf(through.config())
	first := w.startBinary(kubeconfig, kubeconfig, w.elected())
	kit.EventuallyTrue(t, "a leader is elected", func() bool { return w.holder() != "" })
	leader := w.holder()
	state := func(version string, port int) []string {
		return []string{configMap("parked", version), configMap("one", version), later(service("later", port)), later(service("same", 1))}
	}
	leaves := configMap("leaves", "1")
	w.declare("set", append(state("1", 1), leaves)...)
	w.eventuallyHolds("at first")
	same := w.uid(service("same", 1))

	shut, waiting := &gate{}, &atomic.Int64{}
	shut.close()
	t.Cleanup(shut.open)
	through.breakWith(parked("/configmaps/parked", shut, waiting))
	w.declare("set", state("2", 2)...)
	kit.EventuallyTrue(t, "the first process is reconciling", func() bool { return waiting.Load() > 0 })
	kit.Must(t, first.Command.Process.Signal(syscall.SIGSTOP))
	t.Cleanup(func() { _ = first.Command.Process.Signal(syscall.SIGCONT) })

	direct := w.kubeconfigOf(w.controlPlane.Config())
	second := w.startBinary(direct, direct, w.elected())
	kit.EventuallyTrue(t, "the second process leads", func() bool { h := w.holder(); return h != "" && h != leader })
	successor := w.holder()
	w.eventuallyHolds("with the second leader")
	w.declare("set", append(state("3", 3), leaves)...)
	w.eventuallyHolds("after its changes")
	left := w.uid(leaves)

	through.Forget()
	kit.Must(t, first.Command.Process.Signal(syscall.SIGCONT))
	shut.open()
	ended := make(chan error, 1)
	go func() { ended <- first.Command.Wait() }()
	kit.EventuallyTrue(t, "the first process exits", func() bool {
		select {
		case err := <-ended:
			ended <- err
			return true
		default:
			return false
		}
	})
	var exit *exec.ExitError
	if err := <-ended; !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(first.Written.String(), "no longer holds the leader lease") {
		t.Errorf("the first process exited with %v, output:\n%s", err, first.Written)
	}
	if writes := writesOf(through.All()); len(writes) > 0 {
		t.Errorf("the first process made these writes: %q", writes)
	}
	w.eventuallyHolds("in the end")
	if w.holder() != successor {
		t.Errorf("the lease is held by %q, want %q", w.holder(), successor)
	}
	if got, again := w.uid(service("same", 1)), w.uid(leaves); got != same || again != left {
		t.Errorf("the UIDs are %s and %s, were %s and %s", got, again, same, left)
	}
	second.Stop()
}

// TestSuccessorIsBehind transfers the lease to a process whose watch of ManagedResources has not shown changes for
// a while. It must neither undo the previous leader's changes nor create objects that are no longer wanted and in
// no inventory.
func TestSuccessorIsBehind(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	direct := w.kubeconfigOf(w.controlPlane.Config())
	first := w.startBinary(direct, direct, w.elected())
	kit.EventuallyTrue(t, "a leader is elected", func() bool { return w.holder() != "" })
	leader := w.holder()
	w.declare("set", configMap("stays", "1"), configMap("leaves", "1"))
	w.eventuallyHolds("at first")

	behind := newProxy(t, w.controlPlane.Config())
	shut := &gate{}
	t.Cleanup(shut.open)
	behind.disturb(onResource("managedresources", stream{gate: shut}))
	second := w.startBinary(w.kubeconfigOf(behind.config()), direct, w.elected())
	shut.close()
	now := []string{configMap("stays", "2"), configMap("comes", "1")}
	w.note("set", now)
	w.secret("second", now...)
	w.refer("set", "second")
	w.eventuallyHolds("with the first leader")
	version := w.live(now[0]).GetResourceVersion()
	first.Stop()
	kit.EventuallyTrue(t, "the second process leads", func() bool { h := w.holder(); return h != "" && h != leader })
	kit.EventuallyTrue(t, "the second process has reconciled the ManagedResource", func() bool {
		return metric(second, "controller_runtime_reconcile_total", `controller="managedresource"`) >= 2
	})
	if obj := w.live(configMap("leaves", "1")); obj != nil {
		t.Error("the deleted object was created again")
	}
	if after := w.live(now[0]).GetResourceVersion(); after != version {
		t.Errorf("the up-to-date object was written: resourceVersion %s, was %s", after, version)
	}
	shut.open()
	w.eventuallyHolds("in the end")
	second.Stop()
}
