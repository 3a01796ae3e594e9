package integration

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/managedresource"
)

// restricted returns a fixture whose namespace names the account robot, which may use ConfigMaps, and a ManagedResource
// with one.
func restricted(t *testing.T) (*fixture, *resourcesv1alpha1.ManagedResource) {
	t.Helper()
	f := newFixture(t)
	f.reconciler = f.newReconciler(shared.Get(t).Config(), f.client, managedresource.Options{NamespaceServiceAccounts: true})
	mr := f.manage("set", f.configMap("one", "1"))
	f.robot(mr, "get", "create", "patch", "delete")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}
	must(t, f.client.Patch(f.ctx, namespace, client.RawPatch("application/merge-patch+json",
		[]byte(`{"metadata":{"annotations":{"resources.gardener.cloud/service-account-name":"robot"}}}`))))
	f.change(mr, func() { mr.Spec.ServiceAccountName = "" })
	return f, mr
}

// untilApplied reconciles until the condition has a status and its message contains the texts.
func (f *fixture) untilApplied(status resourcesv1alpha1.ConditionStatus, texts ...string) {
	f.Helper()
	var got resourcesv1alpha1.Condition
	f.reconcileUntil("set", "ResourcesApplied is "+string(status), func(mr *resourcesv1alpha1.ManagedResource) bool {
		got = applied(mr)
		return got.Status == status && mr.Status.ObservedGeneration == mr.Generation
	})
	wantContains(f, got.Message, texts...)
}

// TestNamespaceServiceAccounts checks that the account that a Namespace names is the only one of its ManagedResources.
func TestNamespaceServiceAccounts(t *testing.T) {
	f, mr := restricted(t)
	f.untilApplied(resourcesv1alpha1.ConditionTrue)
	f.wantConfigMap("one", "1")

	f.secret("set", "objects.yaml", f.configMap("one", "1")+"\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: two, namespace: "+f.namespace+"}\n")
	f.untilApplied(resourcesv1alpha1.ConditionFalse, `User "system:serviceaccount:`+f.namespace+`:robot" cannot patch resource "secrets"`)

	for _, other := range []string{"default", "default/robot", "kube-system/default"} {
		f.refresh(mr, func() { mr.Spec.ServiceAccountName = other })
		f.secret("set", "objects.yaml", f.configMap("three", other))
		f.untilApplied(resourcesv1alpha1.ConditionFalse, "spec.serviceAccountName must be robot or empty, not "+other)
		f.wantNoConfigMap("three")
		f.wantConfigMap("one", "1") // nothing is pruned
	}
	f.refresh(mr, func() { mr.Spec.ServiceAccountName = f.namespace + "/robot" })
	f.untilApplied(resourcesv1alpha1.ConditionTrue)
	f.wantConfigMap("three", "kube-system/default")
}

// TestNamespaceAccountIsDeleted checks that nothing happens while the account does not exist. If it was deleted with its
// namespace, the ManagedResource ends with its objects.
func TestNamespaceAccountIsDeleted(t *testing.T) {
	f, mr := restricted(t)
	f.untilApplied(resourcesv1alpha1.ConditionTrue)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "robot"}}
	must(t, f.client.Delete(f.ctx, account))
	f.secret("set", "objects.yaml", f.configMap("one", "2"))
	f.untilApplied(resourcesv1alpha1.ConditionFalse, "read ServiceAccount "+f.namespace+"/robot")
	f.wantConfigMap("one", "1")
	must(t, f.client.Create(f.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "robot"}}))
	f.untilApplied(resourcesv1alpha1.ConditionTrue)
	f.wantConfigMap("one", "2")

	must(t, f.client.Delete(f.ctx, account))
	must(t, f.client.Delete(f.ctx, mr))
	f.reconcileOnce("set")
	stored, _, _ := f.reconcile("set")
	if !slices.Contains(stored.Finalizers, resourcesv1alpha1.FinalizerOf(resourcesv1alpha1.DefaultClass)) {
		t.Fatal("the ManagedResource is deleted without its account")
	}
	f.wantConfigMap("one", "2")

	// There is no controller that deletes the content of the namespace, so the test does that.
	must(t, f.client.Delete(f.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}))
	must(t, f.client.Delete(f.ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "robot"}}))
	f.reconcileOnce("set")
	one := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "one"}}
	must(t, client.IgnoreNotFound(f.client.Delete(f.ctx, one))) // the account may still have had the right to delete it
	f.reconcileUntil("set", "the ManagedResource is deleted", func(mr *resourcesv1alpha1.ManagedResource) bool { return mr.Name == "" })
}
