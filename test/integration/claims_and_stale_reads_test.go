package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/managedresource"
)

// Move an object to a ManagedResource that depends on its current owner.
func TestMoveToDependent(t *testing.T) {
	f := newFixture(t)
	options := f.reconciler.Options
	options.PruneDelay = 2 * time.Second
	f.reconciler = f.newReconciler(shared.Get(t).Config(), f.client, options)
	f.manage("base", f.configMap("moved", "1"), f.configMap("stays", "1"))
	f.reconcileOK("base")
	app := f.manage("app", f.configMap("other", "1"))
	f.change(app, func() { app.Spec.DependsOn = []resourcesv1alpha1.Dependency{{Name: "base"}} })
	f.reconcileOK("app")
	before := f.liveConfigMap("moved")
	f.secret("base", "objects.yaml", f.configMap("stays", "1"))
	f.secret("app", "objects.yaml", f.configMap("other", "1")+"---\n"+f.configMap("moved", "1"))
	for range 3 {
		f.reconcileOnce("base")
		mr, _, _ := f.reconcile("app")
		t.Log(applied(mr).Reason, applied(mr).Message)
		f.clock.SetTime(f.clock.Now().Add(time.Second))
	}
	f.reconcileOnce("base")
	f.reconcileOnce("app")
	after := f.liveConfigMap("moved")
	if after == nil || after.UID != before.UID {
		t.Errorf("the moved object was deleted (and recreated: %t)", after != nil)
	}
}

// The denial of a ValidatingAdmissionPolicy is mistaken for an update of an immutable field.
func TestPolicyDenialDeletes(t *testing.T) {
	f := newFixture(t)
	cm := func(v string) string {
		return strings.Replace(f.configMap("one", v), "metadata:\n", "metadata:\n  annotations: {resources.gardener.cloud/delete-on-invalid-update: \"true\"}\n", 1)
	}
	f.manage("set", cm("1"))
	f.reconcileOK("set")
	before := f.liveConfigMap("one")
	f.denyValue("2")
	f.secret("set", "objects.yaml", cm("2"))
	mr, _, err := f.reconcile("set")
	t.Log(err, applied(mr).Message)
	after := f.liveConfigMap("one")
	if after == nil || after.UID != before.UID {
		t.Errorf("the object was deleted because a policy denied its update")
	}
}

// denyValue denies every ConfigMap of the fixture's namespace that has the value, until the test ends.
func (f *fixture) denyValue(value string) {
	f.Helper()
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: f.namespace},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": f.namespace}},
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{"CREATE", "UPDATE"},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
				}}},
			},
			Validations: []admissionv1.Validation{{Expression: "!has(object.data) || !('key' in object.data) || object.data['key'] != '" + value + "'"}},
		},
	}
	must(f, f.client.Create(f.ctx, policy))
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: f.namespace},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: f.namespace,
			ValidationActions: []admissionv1.ValidationAction{"Deny"}},
	}
	must(f, f.client.Create(f.ctx, binding))
	f.Cleanup(func() {
		_ = f.client.Delete(context.Background(), binding)
		_ = f.client.Delete(context.Background(), policy)
	})
	probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "probe"}, Data: map[string]string{"key": value}}
	f.eventually("the policy is in force", func() bool {
		err := f.client.Create(f.ctx, probe.DeepCopy(), client.DryRunAll)
		if err != nil {
			f.Logf("%v", err)
		}
		return err != nil
	})
}

// A correction that a policy denies leaves the field owners as they are, so that the writer can be named.
func TestDeniedCorrectionKeepsTheOwners(t *testing.T) {
	f := newFixture(t)
	f.manage("set", f.configMap("one", "1"))
	f.reconcileOK("set")
	f.patch(f.configMap("one", ""), "kubectl-edit", `{"data":{"key":"other","more":"x"}}`)
	f.denyValue("1")
	before := f.liveConfigMap("one")
	mr, _, _ := f.reconcile("set")
	wantContains(t, applied(mr).Message, "denied request")
	if after := f.liveConfigMap("one"); !equality.Semantic.DeepEqual(after.ManagedFields, before.ManagedFields) {
		t.Errorf("the owners of the fields were changed, although the correction was denied: %v", after.ManagedFields)
	}
}

// A drift rule that points into an atomic list.
func TestDriftRuleInAtomicList(t *testing.T) {
	f := newFixture(t)
	role := func(label string) string {
		return fmt.Sprintf("apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: r, namespace: %s, labels: {l: %s}}\nrules: [{apiGroups: [\"\"], resources: [pods], resourceNames: [a], verbs: [get]}]\n", f.namespace, label)
	}
	mr := f.manage("set", role("one"))
	f.change(mr, func() {
		mr.Spec.DriftDetection = &resourcesv1alpha1.DriftDetection{Ignore: []resourcesv1alpha1.IgnoreRule{{Kind: "Role", Group: "rbac.authorization.k8s.io", Paths: []string{"/rules/*/resourceNames"}}}}
	})
	f.reconcileOK("set")
	f.secret("set", "objects.yaml", role("two"))
	refused, result, err := f.reconcile("set")
	wantRetry(t, false, result, err)
	wantContains(t, applied(refused).Message, "rules/*/resourceNames cannot be left to others")
	u := f.getObject("rbac.authorization.k8s.io/v1", "Role", "r")
	body, _ := json.Marshal(u.Object["rules"])
	if !strings.Contains(string(body), "resourceNames") {
		t.Errorf("the ignored field was removed (the Role now allows all pods): %s", body)
	}
}

// Stale cache: the cached inventory still has an object that the stored one has lost.
type staleReader struct {
	client.Client
	mr *resourcesv1alpha1.ManagedResource
}

func (s *staleReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if mr, ok := obj.(*resourcesv1alpha1.ManagedResource); ok && s.mr != nil {
		s.mr.DeepCopyInto(mr)
		return nil
	}
	return s.Client.Get(ctx, key, obj, opts...)
}

func TestStaleInventoryOrphans(t *testing.T) {
	f := newFixture(t)
	stale := &staleReader{Client: f.client}
	f.reconciler = f.newReconciler(shared.Get(t).Config(), stale, managedresource.Options{})
	f.manage("set", f.configMap("one", "1"), f.configMap("two", "1"))
	old := f.reconcileOK("set")
	f.secret("set", "objects.yaml", f.configMap("one", "1"))
	f.reconcileOK("set")
	f.wantNoConfigMap("two")
	// The Secret has the object again before the cache shows the status that was just written.
	f.secret("set", "objects.yaml", f.configMap("one", "1"), "two.yaml", f.configMap("two", "1"))
	stale.mr = old
	_, result, err := f.reconcile("set")
	t.Log(result, err)
	stale.mr = nil
	mr := &resourcesv1alpha1.ManagedResource{}
	must(t, f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: "set"}, mr))
	if f.liveConfigMap("two") != nil && len(mr.Status.Resources) == 1 {
		t.Errorf("the object two exists but is in no inventory")
	}
	f.secret("set", "objects.yaml", f.configMap("one", "1"))
	f.reconcileOK("set")
	if f.liveConfigMap("two") != nil {
		t.Errorf("the object two is orphaned")
	}
}

// PersistentVolumeClaims of a StatefulSet that another client has recreated.
func TestClaimsOfForeignStatefulSet(t *testing.T) {
	f := newFixture(t)
	m := fmt.Sprintf(`apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: %s}
spec:
  replicas: 0
  serviceName: db
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: db, image: db}]}}
  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]
`, f.namespace)
	mr := f.manage("set", m)
	f.change(mr, func() { mr.Spec.DeletePersistentVolumeClaims = ptr.To(true) })
	f.reconcileOK("set")
	must(t, f.client.Create(f.ctx, toObject(f, fmt.Sprintf("apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data-db-0, namespace: %s, labels: {app: db}}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}", f.namespace), &corev1.PersistentVolumeClaim{})))
	must(t, f.client.Delete(f.ctx, mr))
	var once bool
	gets := 0
	f.requests.breakWith(func(r *http.Request) error {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/statefulsets/db") {
			if gets++; gets == 1 && !once { // the read before the deletion of the claims
				once = true
				u := f.getObject("apps/v1", "StatefulSet", "db")
				must(t, f.client.Delete(f.ctx, u))
				f.eventually("the StatefulSet is deleted", func() bool {
					return f.client.Get(f.ctx, client.ObjectKeyFromObject(u), u) != nil
				})
				f.createObject(m, "somebody")
			}
		}
		return nil
	})
	f.reconcileOnce("set")
	pvc := &corev1.PersistentVolumeClaim{}
	err := f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: "data-db-0"}, pvc)
	u := f.getObject("apps/v1", "StatefulSet", "db")
	t.Log(u.GetDeletionTimestamp())
	if err != nil || pvc.DeletionTimestamp != nil {
		t.Errorf("the claims of another client's StatefulSet were deleted: %v %v", err, pvc.DeletionTimestamp)
	}
}

// A ManagedResource with a predecessor's inventory moves to another class.
func TestAbsentPatchTakesForeign(t *testing.T) {
	f := newFixture(t)
	f.manage("set", f.configMap("one", "1"))
	done := false
	f.requests.breakWith(func(r *http.Request) error {
		if !done && r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/configmaps/one") {
			done = true
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "one", Annotations: map[string]string{
				resourcesv1alpha1.AnnotationOrigin: "other-cluster:x/y"}}, Data: map[string]string{"key": "foreign"}}
			must(t, f.client.Create(f.ctx, cm, client.FieldOwner("other")))
		}
		return nil
	})
	f.reconcileOnce("set")
	if cm := f.liveConfigMap("one"); cm.Data["key"] != "foreign" {
		t.Errorf("an object that another resource-manager had created in the meantime was overwritten: %v %v", cm.Data, cm.Annotations[resourcesv1alpha1.AnnotationOrigin])
	}
}

// The time per object when many objects move.
func TestMoveManyIsLinear(t *testing.T) {
	f := newFixture(t)
	source := &countingReader{Client: f.client}
	f.reconciler = f.newReconciler(shared.Get(t).Config(), source, managedresource.Options{})
	var docs []string
	for i := range 150 {
		docs = append(docs, f.configMap(fmt.Sprintf("c%d", i), "1"))
	}
	f.manage("a", docs...)
	f.reconcileOK("a")
	f.manage("b", docs...)
	source.gets = 0
	f.reconcileOnce("b")
	t.Logf("b, conflicting: %d reads of ManagedResources for 150 objects", source.gets)
	f.secret("a", "objects.yaml", "# none")
	source.gets = 0
	f.reconcileOnce("a")
	t.Logf("a, releasing: %d reads of ManagedResources for 150 objects", source.gets)
	source.gets = 0
	f.reconcileOnce("b")
	t.Logf("b, adopting: %d reads of ManagedResources for 150 objects", source.gets)
	if source.gets > 10 {
		t.Errorf("%d full copies of a ManagedResource (whole inventory) for 150 objects: quadratic", source.gets)
	}
}

type countingReader struct {
	client.Client
	gets int
}

func (s *countingReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if _, ok := obj.(*resourcesv1alpha1.ManagedResource); ok {
		s.gets++
	}
	return s.Client.Get(ctx, key, obj, opts...)
}
