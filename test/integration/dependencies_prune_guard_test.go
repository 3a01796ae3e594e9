package integration

import (
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// change changes the spec of a ManagedResource.
func (f *fixture) change(mr *resourcesv1alpha1.ManagedResource, change func()) {
	f.Helper()
	patch := client.MergeFrom(mr.DeepCopy())
	change()
	must(f, f.client.Patch(f.ctx, mr, patch))
}

func TestBinaryWaitsForDependencies(t *testing.T) {
	f := newFixture(t)
	f.start(noElection)
	f.secret("app", "objects.yaml", f.configMap("app", "1"))
	app := &resourcesv1alpha1.ManagedResource{}
	app.Namespace, app.Name = f.namespace, "app"
	app.Spec.SecretRefs = []resourcesv1alpha1.LocalObjectReference{{Name: "app"}}
	app.Spec.DependsOn = []resourcesv1alpha1.Dependency{{Name: "base"}}
	must(t, f.client.Create(f.ctx, app))
	f.eventuallyApplied("app", resourcesv1alpha1.ConditionProgressing, resourcesv1alpha1.ReasonDependencyNotReady)
	f.wantNoConfigMap("app")

	base := f.manage("base", f.configMap("base", "1"))
	f.eventuallyApplied("app", resourcesv1alpha1.ConditionTrue, resourcesv1alpha1.ReasonApplySucceeded)
	f.wantConfigMap("base", "1")
	f.wantConfigMap("app", "1")

	must(t, f.client.Get(f.ctx, client.ObjectKeyFromObject(base), base))
	f.change(base, func() { base.Spec.DependsOn = []resourcesv1alpha1.Dependency{{Name: "app"}} })
	f.eventuallyApplied("base", resourcesv1alpha1.ConditionFalse, resourcesv1alpha1.ReasonDependencyCycle)
	must(t, f.client.Get(f.ctx, client.ObjectKeyFromObject(base), base))
	wantContains(t, applied(base).Message, f.namespace+"/base → "+f.namespace+"/app → "+f.namespace+"/base")
	f.wantConfigMap("base", "1")
}

func TestUnhealthyDependencyIsWaitedFor(t *testing.T) {
	f := newFixture(t)
	base := f.manage("base", f.configMap("base", "1"))
	base = f.reconcileOK(base.Name)
	health := resourcesv1alpha1.Condition{
		Type: resourcesv1alpha1.ResourcesHealthy, Status: resourcesv1alpha1.ConditionFalse, Reason: "PodUnhealthy",
		LastTransitionTime: applied(base).LastTransitionTime, LastUpdateTime: applied(base).LastUpdateTime,
	}
	at := slices.IndexFunc(base.Status.Conditions, func(c resourcesv1alpha1.Condition) bool { return c.Type == health.Type })
	base.Status.Conditions[at] = health
	must(t, f.client.Status().Update(f.ctx, base))
	app := f.manage("app", f.configMap("app", "1"))
	f.change(app, func() { app.Spec.DependsOn = []resourcesv1alpha1.Dependency{{Name: "base"}} })
	mr, _, err := f.reconcile("app")
	must(t, err)
	wantContains(t, applied(mr).Message, f.namespace+"/base is not healthy")
	f.wantNoConfigMap("app")
	base.Status.Conditions[at].Status = resourcesv1alpha1.ConditionTrue
	must(t, f.client.Status().Update(f.ctx, base))
	f.reconcileOK("app")
}

func TestPruneGuard(t *testing.T) {
	f := newFixture(t)
	one, two, three := f.configMap("one", "1"), f.configMap("two", "1"), f.configMap("three", "1")
	mr := f.manage("set", one, two, three)
	most := int32(40)
	f.change(mr, func() { mr.Spec.Prune = &resourcesv1alpha1.PruneGuard{MaxPercent: &most} })
	f.reconcileOK("set")
	refused := func(says ...string) string {
		mr, result, err := f.reconcile("set")
		wantRetry(t, false, result, err)
		condition := applied(mr)
		if condition.Status != resourcesv1alpha1.ConditionFalse || condition.Reason != resourcesv1alpha1.ReasonPruneRefused {
			t.Errorf("ResourcesApplied is %s %s: %s", condition.Status, condition.Reason, condition.Message)
		}
		wantContains(t, condition.Message, says...)
		_, confirmation, _ := strings.Cut(condition.Message, resourcesv1alpha1.AnnotationConfirmPrune+"=")
		return confirmation
	}

	f.secret("set", "objects.yaml", "")
	refused("3 of 3 objects", "no object of the inventory would be left")
	f.secret("set", "objects.yaml", f.configMap("one", "2"))
	confirmation := refused("2 of 3 objects", "more than 40 %")
	f.wantConfigMap("one", "2")
	f.wantConfigMap("two", "1")

	must(t, f.client.Get(f.ctx, client.ObjectKeyFromObject(mr), mr))
	f.change(mr, func() { mr.Annotations = map[string]string{resourcesv1alpha1.AnnotationConfirmPrune: confirmation} })
	f.reconcileOK("set")
	f.wantNoConfigMap("two")
	f.wantNoConfigMap("three")

	f.secret("set", "objects.yaml", "# nothing")
	refused("1 of 1 objects") // the confirmation was for different manifests
	f.delete(mr)
	f.wantNoConfigMap("one")
}

func TestDriftDetectionIgnoresFields(t *testing.T) {
	f := newFixture(t)
	mr := f.manage("set", f.configMap("one", "1")+"  other: \"1\"\n", f.configMap("two", "1"))
	f.change(mr, func() {
		mr.Spec.DriftDetection = &resourcesv1alpha1.DriftDetection{
			Ignore: []resourcesv1alpha1.IgnoreRule{{Kind: "ConfigMap", Name: "one", Paths: []string{"/data/key"}}},
		}
	})
	f.reconcileOK("set")
	for _, name := range []string{"one", "two"} {
		live := f.wantConfigMap(name, "1")
		live.Data["key"] = "changed"
		must(t, f.client.Update(f.ctx, live, client.FieldOwner("kubectl-edit")))
	}
	f.reconcileOK("set")
	f.wantConfigMap("one", "changed")
	f.wantConfigMap("two", "1")
	f.requests.writes()
	f.reconcileOK("set")
	if writes := f.requests.writes(); len(writes) > 0 {
		t.Errorf("the next reconcile writes %v", writes)
	}
	f.secret("set", "objects.yaml", f.configMap("one", "2")+"  other: \"2\"\n", "two.yaml", f.configMap("two", "1"))
	f.reconcileOK("set")
	if live := f.wantConfigMap("one", "changed"); live.Data["other"] != "2" {
		t.Errorf("the data is %v", live.Data)
	}

	must(t, f.client.Get(f.ctx, client.ObjectKeyFromObject(mr), mr))
	f.change(mr, func() { mr.Spec.DriftDetection.Ignore[0].Paths = []string{"data.key"} })
	mr, result, err := f.reconcile("set")
	wantRetry(t, false, result, err)
	wantContains(t, applied(mr).Message, "Nothing is applied or pruned (1): spec.driftDetection.ignore[0]", "not a JSON pointer")
	f.wantConfigMap("one", "changed")
}
