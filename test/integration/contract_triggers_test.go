package integration

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// adrift falsifies the condition of a ManagedResource. That is not a trigger, but the next reconcile corrects it.
func (f *fixture) adrift() {
	f.Helper()
	must(f, retry.RetryOnConflict(retry.DefaultRetry, func() error { // the resource-manager may write at the same time
		mr := f.read("set")
		for i := range mr.Status.Conditions {
			if mr.Status.Conditions[i].Type == resourcesv1alpha1.ResourcesApplied {
				mr.Status.Conditions[i].Status, mr.Status.Conditions[i].Reason = resourcesv1alpha1.ConditionFalse, "Adrift"
			}
		}
		return f.client.Status().Update(f.ctx, mr)
	}))
}

func (f *fixture) eventuallyPutBack(why string) {
	f.Helper()
	f.eventually("the condition is corrected: "+why, func() bool { return applied(f.read("set")).Reason != "Adrift" })
}

// TestContractBinaryTriggers checks the triggers of an immediate reconcile. The next resync is a minute away.
func TestContractBinaryTriggers(t *testing.T) {
	f := newFixture(t)
	f.start(noElection)
	mr := f.manage("set", f.configMap("one", "1"))
	f.eventuallyApplied("set", resourcesv1alpha1.ConditionTrue, "ApplySucceeded")
	change := func(why string, change func()) {
		t.Helper()
		f.adrift()
		f.refresh(mr, change)
		f.eventuallyPutBack(why)
	}
	operation := func(value string) func() {
		return func() { mr.Annotations = map[string]string{"gardener.cloud/operation": value} }
	}
	change("the spec changes", func() { mr.Spec.InjectLabels = map[string]string{"a": "b"} })
	change("operation reconcile", operation("reconcile"))
	f.eventually("the annotation is removed", func() bool { return len(f.read("set").Annotations) == 0 })
	change("operation restore", operation("restore"))
	change("operation migrate", operation("migrate"))
	if got := f.read("set").Annotations["gardener.cloud/operation"]; got != "migrate" {
		t.Errorf("the annotation is %q", got)
	}

	f.refresh(mr, func() { mr.Annotations = map[string]string{resourcesv1alpha1.AnnotationIgnore: "true"} })
	f.eventuallyApplied("set", resourcesv1alpha1.ConditionTrue, "ManagedResourceIgnored")
	change("ignore is removed", func() { mr.Annotations = nil })
}

// TestContractBinarySecretTriggers: a Secret triggers the ManagedResources of its own namespace that refer to it.
func TestContractBinarySecretTriggers(t *testing.T) {
	f, other := newFixture(t), newFixture(t)
	f.startIn([]string{f.namespace, other.namespace}, noElection)
	for _, g := range []*fixture{f, other} {
		g.manage("set", g.configMap("one", "1"))
		g.eventuallyApplied("set", resourcesv1alpha1.ConditionTrue, "ApplySucceeded")
	}
	ignored := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{
		Namespace: f.namespace, Name: "ignored", Annotations: map[string]string{resourcesv1alpha1.AnnotationIgnore: "true"},
	}}
	ignored.Spec.SecretRefs = []resourcesv1alpha1.LocalObjectReference{{Name: "set"}}
	must(t, f.client.Create(f.ctx, ignored))

	untouched := false
	for _, value := range []string{"2", "3", "4"} { // one late reaction to earlier changes is possible
		f.adrift()
		other.secret("set", "objects.yaml", other.configMap("one", value))
		other.eventually("its own Secret is applied", func() bool { return other.liveConfigMap("one").Data["key"] == value })
		untouched = untouched || applied(f.read("set")).Reason == "Adrift"
	}
	if !untouched {
		t.Error("each change of a Secret in another namespace triggers a reconcile")
	}
	f.adrift()

	f.secret("set", "objects.yaml", f.configMap("one", "1"), "more.yaml", f.configMap("two", "1"))
	f.eventuallyPutBack("the Secret changes")
	must(t, f.client.Delete(f.ctx, secretOf(f, "set")))
	f.eventuallyApplied("set", resourcesv1alpha1.ConditionFalse, "CannotReadSecret")
	f.adrift()
	f.secret("set", "objects.yaml", f.configMap("one", "1"))
	f.eventuallyPutBack("the Secret is created")
	if got := f.read("ignored"); applied(got).Reason != "ManagedResourceIgnored" || len(got.Finalizers) > 0 || len(got.Status.Resources) > 0 {
		t.Errorf("the ignored one has the finalizers %v and the status %+v", got.Finalizers, got.Status)
	}
}

// TestContractBinaryHandOver: a reconcile is triggered when another class is done, when the wait for a state ends,
// and by a deletion. Failures are retried without a trigger.
func TestContractBinaryHandOver(t *testing.T) {
	f := newFixture(t)
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{
		Namespace: f.namespace, Name: "set", Finalizers: []string{finalizer + "-other"},
	}}
	mr.Spec.SecretRefs = []resourcesv1alpha1.LocalObjectReference{{Name: "set"}}
	f.secret("set", "objects.yaml", f.configMap("one", "1"))
	must(t, f.client.Create(f.ctx, mr))
	f.start(noElection)
	f.manage("fence", f.configMap("fence", "1"))
	f.eventuallyApplied("fence", resourcesv1alpha1.ConditionTrue, "ApplySucceeded")
	f.wantNoConfigMap("one")
	f.refresh(mr, func() { mr.Finalizers = nil })
	f.eventuallyApplied("set", resourcesv1alpha1.ConditionTrue, "ApplySucceeded")

	f.refresh(mr, func() { mr.Annotations = map[string]string{"gardener.cloud/operation": "wait-for-state"} })
	must(t, f.client.Delete(f.ctx, mr))
	f.secret("fence", "objects.yaml", f.configMap("fence", "2"))
	f.eventually("the fence is applied", func() bool { return f.liveConfigMap("fence").Data["key"] == "2" })
	f.wantConfigMap("one", "1")
	f.refresh(mr, func() { mr.Annotations = nil })
	f.eventually("the objects are deleted", func() bool { return f.liveConfigMap("one") == nil })

	later := f.namespace + "-later"
	f.manage("early", f.here("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, namespace: NS-later}\n"))
	f.eventuallyApplied("early", resourcesv1alpha1.ConditionFalse, "ApplyFailed")
	must(t, f.client.Create(f.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: later}}))
	f.eventuallyApplied("early", resourcesv1alpha1.ConditionTrue, "ApplySucceeded")
	if names := entries(f.read("early")); !slices.Equal(names, []string{"v1 ConfigMap " + later + " one"}) {
		t.Errorf("the inventory is %v", names)
	}
}
