package integration

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// TestFinalizeContentOfNamespace: when the time limit of a Namespace has passed, the finalizers of objects that are
// being deleted in it are removed, too. Objects that are not being deleted keep theirs.
func TestFinalizeContentOfNamespace(t *testing.T) {
	f := newFixture(t)
	namespace := f.namespace + "-full"
	mr := f.manage("set", "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: "+namespace+"\n"+
		"  annotations: {resources.gardener.cloud/finalize-deletion-after: 1h}\n")
	f.reconcileOK("set")
	content := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Finalizers: []string{"example.org/stuck"}}}
	}
	for _, name := range []string{"deleted", "living"} {
		must(t, f.client.Create(f.ctx, content(name)))
	}
	must(t, f.client.Delete(f.ctx, content("deleted")))
	must(t, f.client.Delete(f.ctx, mr))
	_, _, err := f.reconcile("set")
	must(t, err)
	must(t, f.client.Get(f.ctx, client.ObjectKeyFromObject(content("deleted")), &corev1.ConfigMap{})) // its time limit has not passed
	f.clock.SetTime(time.Now().Add(2 * time.Hour))
	f.reconcileUntil("set", "the ManagedResource is deleted", func(mr *resourcesv1alpha1.ManagedResource) bool { return mr.Name == "" })
	if err := f.client.Get(f.ctx, client.ObjectKeyFromObject(content("deleted")), &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Errorf("the object that was being deleted still exists: %v", err)
	}
	living := &corev1.ConfigMap{}
	must(t, f.client.Get(f.ctx, client.ObjectKeyFromObject(content("living")), living))
	if len(living.Finalizers) == 0 {
		t.Error("the object that is not being deleted lost its finalizers")
	}
}

// TestStuckNamespaceNamesItsCause: the condition of a ManagedResource says why a Namespace cannot be deleted, whether the
// ManagedResource or another client does. Nothing in this cluster deletes the content of Namespaces.
func TestStuckNamespaceNamesItsCause(t *testing.T) {
	f := newFixture(t)
	name := f.namespace + "-stuck"
	mr := f.manage("set", "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: "+name+"\n")
	f.reconcileOK("set")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	must(t, f.client.Delete(f.ctx, namespace))
	must(t, f.client.Get(f.ctx, client.ObjectKeyFromObject(namespace), namespace))
	before := client.MergeFrom(namespace.DeepCopy())
	const cause = "Discovery failed for some groups, 1 failing: metrics.example.org"
	namespace.Status.Conditions = []corev1.NamespaceCondition{
		{Type: corev1.NamespaceDeletionDiscoveryFailure, Status: corev1.ConditionTrue, Reason: "DiscoveryFailed", Message: cause},
		{Type: corev1.NamespaceDeletionContentFailure, Status: corev1.ConditionFalse, Reason: "ContentDeleted", Message: "nothing to see"},
	}
	must(t, f.client.Status().Patch(f.ctx, namespace, before))
	says := func(mr *resourcesv1alpha1.ManagedResource) bool {
		f.clock.Step(10 * time.Second)
		text := applied(mr).Message
		return strings.Contains(text, name) && strings.Contains(text, cause) && !strings.Contains(text, "nothing to see")
	}
	f.reconcileUntil("set", "the condition names the cause while another client deletes the Namespace", says)
	must(t, f.client.Delete(f.ctx, mr))
	f.reconcileUntil("set", "the condition names the cause while the ManagedResource is deleted", func(mr *resourcesv1alpha1.ManagedResource) bool {
		return mr.DeletionTimestamp != nil && says(mr)
	})
}
