package integration

import (
	"slices"
	"strings"
	"testing"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// ask requests the operation reconcile of a ManagedResource.
func (f *fixture) ask(name string) {
	f.Helper()
	mr := f.read(name)
	f.change(mr, func() {
		mr.Annotations = map[string]string{resourcesv1alpha1.AnnotationOperation: resourcesv1alpha1.OperationReconcile}
	})
}

// TestOperationReconcileSendsEverything: the operation sends unchanged objects again, so that webhooks see them, and
// only once.
func TestOperationReconcileSendsEverything(t *testing.T) {
	f := newFixture(t)
	f.manage("app", f.configMap("one", "1"))
	f.reconcileOK("app")
	sent := func() bool {
		return slices.ContainsFunc(f.requests.writes(), func(request string) bool { return strings.Contains(request, "configmaps/one") })
	}
	f.requests.writes()
	f.reconcileOK("app")
	if sent() {
		t.Error("an object is sent although nothing changed")
	}
	f.ask("app")
	f.reconcileOK("app")
	if !sent() {
		t.Error("the operation sends nothing")
	}
	f.reconcileOK("app")
	if sent() {
		t.Error("the operation is repeated")
	}
}

// TestOperationReconcileOpensTheGate: a repair does not have to wait for the dependency that it repairs. The next
// change waits again.
func TestOperationReconcileOpensTheGate(t *testing.T) {
	f := newFixture(t)
	f.gated(f.configMap("one", "1"))
	f.setHealth("base", resourcesv1alpha1.ConditionFalse, "PodUnhealthy")
	f.secret("app", "objects.yaml", f.configMap("one", "2"))
	f.waits(resourcesv1alpha1.ReasonDependencyNotReady, "/base is not healthy")
	f.ask("app")
	f.reconcileOK("app")
	f.wantConfigMap("one", "2")
	f.secret("app", "objects.yaml", f.configMap("one", "3"))
	f.waits(resourcesv1alpha1.ReasonDependencyNotReady, "/base is not healthy")
	f.wantConfigMap("one", "2")
}
