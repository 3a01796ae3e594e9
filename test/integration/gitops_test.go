package integration

import (
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
)

// TestFluxFollowsAManagedResource evaluates kstatus, which Flux uses to decide readiness, in every state of a
// ManagedResource, as the API server returns it.
func TestFluxFollowsAManagedResource(t *testing.T) {
	f := newFixture(t)
	want := func(when string, want status.Status) {
		t.Helper()
		result, err := status.Compute(f.getObject("resources.gardener.cloud/v1alpha1", "ManagedResource", "set"))
		if err != nil || result.Status != want {
			t.Errorf("%s: %+v, %v, want %s", when, result, err, want)
		}
	}
	mr := f.manage("set", f.configMap("one", "1"))
	want("before the first reconcile", status.InProgressStatus)
	mr = f.reconcileOK(mr.Name)
	want("applied", status.CurrentStatus)
	f.change(mr, func() { mr.Spec.InjectLabels = map[string]string{"a": "b"} })
	want("changed", status.InProgressStatus)
	f.reconcileOK("set")
	want("applied again", status.CurrentStatus)
	f.secret("set", "objects.yaml", "apiVersion: v1\nkind: Wrong\nmetadata: {name: x}\n")
	f.reconcileOnce("set")
	want("failed", status.InProgressStatus)
	f.secret("set", "objects.yaml", f.configMap("one", "2"))
	f.reconcileOK("set")
	want("mended", status.CurrentStatus)
	must(t, f.client.Delete(f.ctx, mr))
	want("deleted", status.TerminatingStatus)
}
