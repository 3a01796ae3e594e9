package integration

import (
	"strings"
	"testing"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// setHealth sets the health condition of a ManagedResource.
func (f *fixture) setHealth(name string, status resourcesv1alpha1.ConditionStatus, reason string) {
	f.Helper()
	mr := f.read(name)
	for i := range mr.Status.Conditions {
		if condition := &mr.Status.Conditions[i]; condition.Type == resourcesv1alpha1.ResourcesHealthy {
			condition.Status, condition.Reason = status, reason
		}
	}
	must(f, f.client.Status().Update(f.ctx, mr))
}

// gated applies a ManagedResource "base", and a ManagedResource "app" that depends on it.
func (f *fixture) gated(manifests string) {
	f.Helper()
	f.manage("base", f.configMap("base", "1"))
	f.reconcileOK("base")
	app := f.manage("app", manifests)
	f.change(app, func() { app.Spec.DependsOn = []resourcesv1alpha1.Dependency{{Name: "base"}} })
	f.reconcileOK("app")
}

// waits reconciles "app", which must hold its changes.
func (f *fixture) waits(reason string, says ...string) {
	f.Helper()
	mr, result, err := f.reconcile("app")
	must(f, err)
	condition := applied(mr)
	if condition.Reason != reason || result.RequeueAfter != syncPeriod {
		f.Errorf("ResourcesApplied is %s %s, the requeue interval is %s: %s", condition.Status, condition.Reason, result.RequeueAfter, condition.Message)
	}
	wantContains(f, condition.Message, says...)
}

// staysAsItIs reconciles "app". Its objects must be maintained without a change of its status.
func (f *fixture) staysAsItIs(object, value string) {
	f.Helper()
	before := f.read("app").ResourceVersion
	f.requests.writes()
	f.reconcileOK("app")
	if writes := f.requests.writes(); len(writes) > 0 {
		f.Errorf("nothing changed, but the reconcile writes %v", writes)
	}
	must(f, f.client.Delete(f.ctx, f.liveConfigMap(object)))
	f.reconcileOK("app")
	f.wantConfigMap(object, value)
	edited := f.liveConfigMap(object)
	edited.Data["key"] = "by hand"
	must(f, f.client.Update(f.ctx, edited, fieldOwner("somebody")))
	f.reconcileOK("app")
	f.wantConfigMap(object, value)
	if after := f.read("app").ResourceVersion; after != before {
		f.Errorf("its status was written: %s, %s", before, after)
	}
}

// TestAppliedIsKeptWhileDependenciesAreNotReady: dependencies gate changes, but not applied objects.
func TestAppliedIsKeptWhileDependenciesAreNotReady(t *testing.T) {
	for name, test := range map[string]struct {
		close  func(*fixture)
		reason string
		says   string
	}{
		"unhealthy": {func(f *fixture) { f.setHealth("base", resourcesv1alpha1.ConditionFalse, "PodUnhealthy") },
			resourcesv1alpha1.ReasonDependencyNotReady, "/base is not healthy: PodUnhealthy"},
		"not observed": {func(f *fixture) {
			base := f.read("base")
			f.change(base, func() { base.Spec.InjectLabels = map[string]string{"a": "b"} })
		}, resourcesv1alpha1.ReasonDependencyNotReady, "/base is not applied: its generation 2 has not been observed"},
		"deleted": {func(f *fixture) { must(f, f.client.Delete(f.ctx, f.read("base"))) },
			resourcesv1alpha1.ReasonDependencyNotReady, "/base is being deleted"},
		"a cycle made by the dependency": {func(f *fixture) {
			base := f.read("base")
			f.change(base, func() { base.Spec.DependsOn = []resourcesv1alpha1.Dependency{{Name: "app"}} })
		}, resourcesv1alpha1.ReasonDependencyCycle, "/app → "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			one, two, old := f.configMap("one", "1"), f.configMap("two", "1"), f.configMap("old", "1")
			manifests := one + "---\n" + two + "---\n" + old
			f.gated(manifests)
			test.close(f)
			f.staysAsItIs("one", "1")
			f.restart()
			f.staysAsItIs("one", "1")

			changed := one + "---\n" + f.configMap("two", "2") + "---\n" + f.configMap("new", "1")
			f.secret("app", "objects.yaml", changed)
			f.waits(test.reason, test.says, "the change of generation", "to create 1 (v1/ConfigMap/"+f.namespace+"/new)",
				"to update 1 (v1/ConfigMap/"+f.namespace+"/two)", "to remove 1 (v1/ConfigMap/"+f.namespace+"/old)")
			before := f.read("app").ResourceVersion
			f.waits(test.reason, test.says)
			if after := f.read("app").ResourceVersion; after != before {
				t.Errorf("the status is written although the same changes wait for the same dependency: %s, %s", before, after)
			}
			f.wantConfigMap("two", "1")
			f.wantConfigMap("old", "1")
			f.wantNoConfigMap("new")
			must(t, f.client.Delete(f.ctx, f.liveConfigMap("one")))
			f.restart()
			f.waits(test.reason, test.says)
			f.wantConfigMap("one", "1") // the applied manifest is maintained

			f.secret("app", "objects.yaml", manifests)
			f.reconcileOK("app") // a reverted change is not a change
			f.staysAsItIs("two", "1")

			f.secret("app", "objects.yaml", changed)
			f.waits(test.reason)
			app := f.read("app")
			f.change(app, func() { app.Spec.DependsOn = nil })
			f.reconcileUntil("app", "the change is applied", func(mr *resourcesv1alpha1.ManagedResource) bool {
				return applied(mr).Status == resourcesv1alpha1.ConditionTrue && f.liveConfigMap("old") == nil
			})
			f.wantConfigMap("two", "2")
			f.wantConfigMap("new", "1")
		})
	}
}

// TestChangeOfSpecThatIsTakenBack: the generation changes, the inputs do not.
func TestChangeOfSpecThatIsTakenBack(t *testing.T) {
	f := newFixture(t)
	f.gated(f.configMap("one", "1"))
	f.setHealth("base", resourcesv1alpha1.ConditionFalse, "PodUnhealthy")
	app := f.read("app")
	f.change(app, func() { app.Spec.InjectLabels = map[string]string{"a": "b"} })
	f.waits(resourcesv1alpha1.ReasonDependencyNotReady, "generation 3", "to update 1")
	f.change(app, func() { app.Spec.InjectLabels = nil })
	if mr := f.reconcileOK("app"); mr.Status.ObservedGeneration != mr.Generation {
		t.Errorf("generation %d of %d is observed", mr.Status.ObservedGeneration, mr.Generation)
	}
	// A change of the spec that changes no object does not have to wait.
	f.change(app, func() { app.Spec.Prune = &resourcesv1alpha1.PruneGuard{} })
	f.reconcileOK("app")
}

// TestFirstRevisionWaits: while nothing may be applied yet, nothing is recorded or reported as healthy.
func TestFirstRevisionWaits(t *testing.T) {
	f := newFixture(t)
	app := f.manage("app", f.configMap("app", "1"), strings.Replace(f.configMap("other", "1"), "ConfigMap", "Unheard", 1))
	f.change(app, func() { app.Spec.DependsOn = []resourcesv1alpha1.Dependency{{Name: "base"}} })
	f.waits(resourcesv1alpha1.ReasonDependencyNotReady, "/base does not exist", "to create 2")
	mr := f.read("app")
	healthy := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesHealthy)
	if len(mr.Status.Resources) > 0 || healthy.Status != resourcesv1alpha1.ConditionUnknown || mr.Status.ObservedGeneration != mr.Generation {
		t.Errorf("the status is %+v", mr.Status)
	}
	f.wantNoConfigMap("app")
	f.delete(mr)
}

// TestMoveToDependencyWhileTheGateIsClosed: an object moves from a ManagedResource to its dependency, which cannot be
// ready before it has the object. The object is never deleted, and neither waits for the other forever.
func TestMoveToDependencyWhileTheGateIsClosed(t *testing.T) {
	f := newFixture(t)
	moved := f.configMap("moved", "1")
	f.gated(f.configMap("stays", "1") + "---\n" + moved)
	before := f.liveConfigMap("moved").UID
	f.secret("base", "objects.yaml", f.configMap("base", "1")+"---\n"+moved)
	if mr, _, _ := f.reconcile("base"); applied(mr).Reason != resourcesv1alpha1.ReasonApplyFailed {
		t.Fatalf("the condition of base is %+v", applied(mr))
	}
	f.secret("app", "objects.yaml", f.configMap("stays", "1"))
	f.reconcileOK("app") // base has recorded it, so releasing it does not have to wait for base
	f.reconcileOK("base")
	if mr := f.read("app"); len(mr.Status.Resources) != 1 {
		t.Errorf("the inventory of app is %v", mr.Status.Resources)
	}
	if after := f.wantConfigMap("moved", "1"); after.UID != before {
		t.Error("the object was deleted and created again")
	}
}

// TestMoveFromDependencyThatIsDeleted: a dependency that is being deleted waits for its dependent. Once the dependent
// no longer depends on it, the dependency releases the object that the dependent wants, and no object is deleted.
func TestMoveFromDependencyThatIsDeleted(t *testing.T) {
	f := newFixture(t)
	f.gated(f.configMap("stays", "1"))
	before := f.liveConfigMap("base").UID
	f.beginDeletion(f.read("base"))
	if condition := applied(f.read("base")); condition.Reason != resourcesv1alpha1.ReasonDeletionWaits {
		t.Errorf("the condition of base is %+v", condition)
	}
	f.secret("app", "objects.yaml", f.configMap("stays", "1")+"---\n"+f.configMap("base", "2"))
	f.waits(resourcesv1alpha1.ReasonDependencyNotReady, "/base is being deleted", "to update 1")
	app := f.read("app")
	f.change(app, func() { app.Spec.DependsOn = nil })
	f.reconcileOnce("app")
	f.reconcileUntil("base", "base is deleted", func(mr *resourcesv1alpha1.ManagedResource) bool { return mr.Name == "" })
	f.reconcileOK("app")
	if f.wantConfigMap("base", "2").UID != before {
		t.Error("the object was deleted and created again")
	}
}
