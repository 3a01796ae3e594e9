package integration

import (
	"strings"
	"testing"
	"time"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// startDeletion deletes a ManagedResource and reconciles it once.
func (f *fixture) startDeletion(name string) (*resourcesv1alpha1.ManagedResource, resourcesv1alpha1.Condition) {
	f.Helper()
	must(f, f.client.Delete(f.ctx, f.read(name)))
	mr, _, err := f.reconcile(name)
	must(f, err)
	return mr, applied(mr)
}

// isGone reconciles a ManagedResource until it no longer exists.
func (f *fixture) isGone(name string) {
	f.Helper()
	f.reconcileUntil(name, name+" is deleted", func(mr *resourcesv1alpha1.ManagedResource) bool { return mr.Name == "" })
}

// TestDeletionWaitsForDependents: a ManagedResource that is deleted by hand keeps its objects while another one
// depends on it.
func TestDeletionWaitsForDependents(t *testing.T) {
	f := newFixture(t)
	f.gated(f.configMap("one", "1"))
	_, condition := f.startDeletion("base")
	if condition.Reason != resourcesv1alpha1.ReasonDeletionWaits {
		t.Errorf("the reason is %s: %s", condition.Reason, condition.Message)
	}
	wantContains(f, condition.Message, "Nothing is deleted until these are gone (1): ManagedResource "+f.namespace+"/app")
	before := f.read("base").ResourceVersion
	f.restart()
	_, result, err := f.reconcile("base")
	must(t, err)
	if f.read("base").ResourceVersion != before || result.RequeueAfter != syncPeriod {
		t.Errorf("the reconcile writes the same status again, or the requeue interval is %s", result.RequeueAfter)
	}
	f.wantConfigMap("base", "1")
	f.delete(f.read("app"))
	f.isGone("base")
	f.wantNoConfigMap("base")
}

// TestDeletionAfterDependencyIsDropped: the deletion does not wait for a dependency that was removed.
func TestDeletionAfterDependencyIsDropped(t *testing.T) {
	f := newFixture(t)
	f.gated(f.configMap("one", "1"))
	f.startDeletion("base")
	app := f.read("app")
	f.change(app, func() { app.Spec.DependsOn = nil })
	f.isGone("base")
	f.wantConfigMap("one", "1")
}

// TestDeleteAfter: the list replaces the dependencies, even if it is empty.
func TestDeleteAfter(t *testing.T) {
	f := newFixture(t)
	f.gated(f.configMap("one", "1"))
	base := f.read("base")
	f.change(base, func() { base.Spec.DeleteAfter = []resourcesv1alpha1.ManagedResourceReference{} })
	app := f.read("app")
	f.change(app, func() {
		app.Spec.DeleteAfter = []resourcesv1alpha1.ManagedResourceReference{{Name: "base"}, {Name: "unknown"}}
	})
	if base := f.read("base"); base.Spec.DeleteAfter == nil {
		t.Fatal("an empty list is lost")
	}
	_, condition := f.startDeletion("app")
	wantContains(f, condition.Message, "Nothing is deleted until these are gone (1): ManagedResource "+f.namespace+"/base")
	f.wantConfigMap("one", "1")
	f.delete(f.read("base"))
	f.isGone("app")
	f.wantNoConfigMap("one")
}

// TestDeletionInACycle: no deletion waits forever, and the condition names the cycle.
func TestDeletionInACycle(t *testing.T) {
	f := newFixture(t)
	f.gated(strings.Replace(f.configMap("one", "1"), "metadata:\n", "metadata:\n  finalizers: [example.org/stuck]\n", 1))
	base := f.read("base")
	f.change(base, func() { base.Spec.DependsOn = []resourcesv1alpha1.Dependency{{Name: "app"}} })
	f.delete(base)
	app := f.read("app")
	f.change(app, func() { app.Spec.DependsOn = []resourcesv1alpha1.Dependency{{Name: "app"}} })
	must(t, f.client.Delete(f.ctx, app))
	f.reconcileOnce("app")
	f.clock.SetTime(time.Now().Add(2 * time.Hour)) // the status does not report every reconcile
	f.reconcileUntil("app", "the cycle is reported", func(mr *resourcesv1alpha1.ManagedResource) bool {
		return strings.Contains(applied(mr).Message, "would wait for each other (1): "+f.namespace+"/app → "+f.namespace+"/app")
	})
	one := f.liveConfigMap("one")
	one.Finalizers = nil
	must(t, f.client.Update(f.ctx, one))
	f.isGone("app")
}

// TestFinalizeDeletionAfterOnManagedResource: the annotation limits the wait for others and for finalizers. The wait
// does not end earlier.
func TestFinalizeDeletionAfterOnManagedResource(t *testing.T) {
	f := newFixture(t)
	f.manage("base", strings.Replace(f.configMap("base", "1"), "metadata:\n", "metadata:\n  finalizers: [example.org/stuck]\n", 1))
	f.reconcileOK("base")
	app := f.manage("app", f.configMap("one", "1"))
	f.change(app, func() { app.Spec.DependsOn = []resourcesv1alpha1.Dependency{{Name: "base"}} })
	base := f.read("base")
	f.change(base, func() {
		base.Annotations = map[string]string{resourcesv1alpha1.AnnotationFinalizeDeletionAfter: "10h"}
	})
	mr, _ := f.startDeletion("base")
	_, result, err := f.reconcile("base")
	must(t, err)
	if left := mr.DeletionTimestamp.Add(10 * time.Hour).Sub(f.clock.Now()); result.RequeueAfter > syncPeriod || result.RequeueAfter > left+time.Second {
		t.Errorf("the requeue interval is %s, the remaining time is %s", result.RequeueAfter, left)
	}
	if f.liveConfigMap("base").DeletionTimestamp != nil {
		t.Error("the deletion does not wait")
	}
	f.clock.SetTime(mr.DeletionTimestamp.Add(10*time.Hour + time.Second))
	f.isGone("base")
	f.wantNoConfigMap("base")
}

// beginDeletion deletes a ManagedResource, reconciles it, and advances the clock until the status reports the
// remaining objects.
func (f *fixture) beginDeletion(mr *resourcesv1alpha1.ManagedResource) {
	f.Helper()
	must(f, f.client.Delete(f.ctx, mr))
	f.reconcileOnce(mr.Name)
	f.clock.Step(4 * time.Second)
}
