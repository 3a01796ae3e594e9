package integration

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/managedresource"
)

func secretOf(f *fixture, name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name}}
}

func TestRoad(t *testing.T) {
	f := newFixture(t)
	f.manage("set", f.configMap("one", "1"), f.configMap("two", "1"))
	mr := f.reconcileOK("set")

	if !slices.Contains(mr.Finalizers, resourcesv1alpha1.Finalizer) {
		t.Errorf("the finalizers are %v", mr.Finalizers)
	}
	if mr.Status.ObservedGeneration != mr.Generation || mr.Status.SecretsDataChecksum == nil || len(mr.Status.Resources) != 2 {
		t.Errorf("the status is %+v", mr.Status)
	}
	live := f.wantConfigMap("one", "1")
	if got := live.Annotations[resourcesv1alpha1.AnnotationOrigin]; got != f.namespace+"/set" {
		t.Errorf("the origin is %q", got)
	}
	if got := live.Labels[resourcesv1alpha1.LabelManagedBy]; got != f.namespace {
		t.Errorf("the managed-by label is %q", got)
	}

	f.secret("set", "objects.yaml", f.configMap("one", "2"))
	f.requests.writes()
	mr = f.reconcileOK("set")
	f.wantConfigMap("one", "2")
	f.wantNoConfigMap("two")
	if len(mr.Status.Resources) != 1 {
		t.Errorf("the inventory is %v", mr.Status.Resources)
	}
	writes := f.requests.writes()
	if len(writes) != 2 || !strings.HasPrefix(writes[0], "PATCH") || !strings.HasPrefix(writes[1], "DELETE") {
		t.Errorf("the requests to the target are %v, want one PATCH, then one DELETE", writes)
	}
	wantContains(t, f.event(), "Normal Pruned", "two") // objects applied from manifests have no Event

	f.delete(mr)
	f.wantNoConfigMap("one")
}

func TestNothingIsSentWhenNothingChanged(t *testing.T) {
	f := newFixture(t)
	f.manage("set", f.configMap("one", "1"))
	before := f.reconcileOK("set")
	f.requests.writes()
	f.clock.SetTime(f.clock.Now().Add(time.Hour))
	f.restart()
	after := f.reconcileOK("set")
	if writes := f.requests.writes(); len(writes) > 0 {
		t.Errorf("the requests to the target are %v", writes)
	}
	if before.ResourceVersion != after.ResourceVersion {
		t.Error("the ManagedResource was written")
	}
}

func TestDriftIsPutBack(t *testing.T) {
	f := newFixture(t)
	f.manage("set", f.configMap("one", "1"))
	f.reconcileOK("set")
	live := f.liveConfigMap("one")
	live.Data["key"] = "changed by hand"
	delete(live.Labels, resourcesv1alpha1.LabelManagedBy)
	must(t, f.client.Update(f.ctx, live, client.FieldOwner("kubectl-edit")))
	f.reconcileOK("set")
	live = f.wantConfigMap("one", "1")
	if live.Labels[resourcesv1alpha1.LabelManagedBy] != f.namespace {
		t.Errorf("the labels are %v", live.Labels)
	}
	must(t, f.client.Delete(f.ctx, live))
	f.reconcileOK("set")
	f.wantConfigMap("one", "1")
}

func TestFieldsRemovedFromTheManifestGo(t *testing.T) {
	f := newFixture(t)
	f.manage("set", f.configMap("one", "1")+"  other: value\n")
	f.reconcileOK("set")
	f.secret("set", "objects.yaml", f.configMap("one", "1"))
	f.reconcileOK("set")
	if data := f.liveConfigMap("one").Data; len(data) != 1 {
		t.Errorf("the data is %v", data)
	}
}

func TestInventoryIsStoredBeforeTheFirstApply(t *testing.T) {
	f := newFixture(t)
	mr := f.manage("set", f.configMap("one", "1"), f.configMap("two", "1"))
	f.requests.breakWith(func(request *http.Request) error {
		if request.Method == http.MethodPatch && strings.HasSuffix(request.URL.Path, "/one") {
			return errors.New("connection reset")
		}
		return nil
	})
	mr, _, err := f.reconcile(mr.Name)
	if err == nil {
		t.Error("the failure is not retried")
	}
	if len(mr.Status.Resources) != 2 {
		t.Errorf("the inventory is %v, want both objects", mr.Status.Resources)
	}
	wantContains(t, applied(mr).Message, "ConfigMap/"+f.namespace+"/one", "connection reset")
	f.wantConfigMap("two", "1")
	f.requests.breakWith(nil)
	f.reconcileOK("set")
	f.wantConfigMap("one", "1")
}

func TestPruningNeverBlocksApplying(t *testing.T) {
	f := newFixture(t)
	f.manage("set", f.configMap("one", "1"),
		strings.Replace(f.configMap("stuck", "1"), "metadata:\n", "metadata:\n  finalizers: [example.org/stuck]\n", 1))
	f.reconcileOK("set")
	f.secret("set", "objects.yaml", f.configMap("one", "2"), "new.yaml", f.configMap("new", "1"))
	mr, result, err := f.reconcile("set")
	must(t, err)
	f.wantConfigMap("one", "2")
	f.wantConfigMap("new", "1")
	condition := applied(mr)
	if condition.Status != resourcesv1alpha1.ConditionProgressing || condition.Reason != resourcesv1alpha1.ReasonDeletionPending {
		t.Errorf("ResourcesApplied is %s %s", condition.Status, condition.Reason)
	}
	wantContains(t, condition.Message, "v1/ConfigMap/"+f.namespace+"/stuck")
	if result.RequeueAfter <= 0 || len(mr.Status.Resources) != 3 {
		t.Errorf("the requeue interval is %s, with the inventory %v", result.RequeueAfter, mr.Status.Resources)
	}
	must(t, f.client.Patch(f.ctx, f.liveConfigMap("stuck"),
		client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
	f.reconcileUntil("set", "the inventory no longer has the object", func(mr *resourcesv1alpha1.ManagedResource) bool {
		return applied(mr).Status == resourcesv1alpha1.ConditionTrue && len(mr.Status.Resources) == 2
	})
}

const definition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: coupons.GROUP
spec:
  group: GROUP
  names: {kind: Coupon, plural: coupons, singular: coupon, listKind: CouponList}
  scope: Cluster
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

func TestCustomResourceBesideItsDefinition(t *testing.T) {
	f := newFixture(t)
	group := f.namespace + ".example.org"
	f.manage("set", "apiVersion: "+group+"/v1\nkind: Coupon\nmetadata: {name: summer}\nspec: {percent: 10}\n",
		strings.ReplaceAll(definition, "GROUP", group))
	mr := f.reconcileOK("set")
	if len(mr.Status.Resources) != 2 {
		t.Errorf("the inventory is %v", mr.Status.Resources)
	}
	for _, resource := range mr.Status.Resources {
		if resource.Kind == "Coupon" && resource.Namespace != "" {
			t.Errorf("the cluster-scoped object is recorded in namespace %q", resource.Namespace)
		}
	}
	f.delete(mr)
	f.reconciler.Objects.Rediscover() //nolint:errcheck // cannot fail after it worked once
}

// TestCustomResourceOfALateKind: the API server does not serve a new kind within the time that a reconcile waits for
// it. The next reconcile neither reads the Secret again nor waits for the watch of the kind, which takes a second. It
// only applies the object.
func TestCustomResourceOfALateKind(t *testing.T) {
	f := newFixture(t)
	group := f.namespace + ".example.org"
	f.manage("set", "apiVersion: "+group+"/v1\nkind: Coupon\nmetadata: {name: summer}\nspec: {percent: 10}\n",
		strings.ReplaceAll(definition, "GROUP", group))
	secrets := &secretReads{Reader: f.client}
	f.reconciler.Direct = secrets
	f.requests.breakWith(func(request *http.Request) error {
		if strings.HasPrefix(request.URL.Path, "/apis/"+group) {
			return apierrors.NewNotFound(schema.GroupResource{}, request.URL.Path)
		}
		return nil
	})
	mr, _, err := f.reconcile("set")
	must(t, err)
	if condition := applied(mr); !strings.Contains(condition.Message, "its CustomResourceDefinition is not ready") {
		t.Fatalf("ResourcesApplied is %+v", condition)
	}
	before := secrets.count.Load()
	var first atomic.Pointer[string]
	f.requests.breakWith(func(request *http.Request) error {
		if strings.HasPrefix(request.URL.Path, "/apis/"+group+"/v1/coupons") {
			first.CompareAndSwap(nil, &request.Method)
		}
		return nil
	})
	mr = f.reconcileOK("set")
	if method := first.Load(); method == nil || *method != http.MethodPatch {
		t.Errorf("the first request about the object is %v", ptr.Deref(method, "missing"))
	}
	if reads := secrets.count.Load() - before; reads > 0 {
		t.Errorf("the Secret was read %d more times", reads)
	}
	f.delete(mr)
	f.reconciler.Objects.Rediscover() //nolint:errcheck // cannot fail after it worked once
}

// secretReads counts reads of Secrets.
type secretReads struct {
	client.Reader
	count atomic.Int32
}

func (r *secretReads) Get(ctx context.Context, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
	if _, is := obj.(*corev1.Secret); is {
		r.count.Add(1)
	}
	return r.Reader.Get(ctx, key, obj, options...)
}

func TestFailedDefinitionHoldsBackItsOwnObjectsOnly(t *testing.T) {
	f := newFixture(t)
	group := f.namespace + ".example.org"
	broken := strings.Replace(strings.ReplaceAll(definition, "GROUP", group), "scope: Cluster", "scope: Nowhere", 1)
	f.manage("set", broken, "apiVersion: "+group+"/v1\nkind: Coupon\nmetadata: {name: summer}\n", f.configMap("one", "1"))
	mr, _, _ := f.reconcile("set")
	wantContains(t, applied(mr).Message, "CustomResourceDefinition/coupons."+group, "spec.scope", "Coupon")
	f.wantConfigMap("one", "1")
}

func TestClassChangeHandsOver(t *testing.T) {
	f := newFixture(t)
	other := f.newReconciler(shared.Get(t).Config(), f.client, managedresource.Options{Class: "seed"})
	own := f.reconciler
	mr := f.manage("set", f.configMap("one", "1"))
	f.reconcileOK("set")

	patch := client.MergeFrom(mr.DeepCopy())
	mr.Spec.Class = ptr.To("seed")
	must(t, f.client.Patch(f.ctx, mr, patch))
	f.reconciler = other
	if _, _, err := f.reconcile("set"); err != nil {
		t.Fatal(err)
	}
	f.wantConfigMap("one", "1") // the new one waits
	f.reconciler = own
	f.reconcileUntil("set", "the old one releases the object", func(mr *resourcesv1alpha1.ManagedResource) bool {
		return len(mr.Finalizers) == 0
	})
	f.wantNoConfigMap("one")
	must(t, f.client.Get(f.ctx, client.ObjectKeyFromObject(mr), mr))
	if len(mr.Status.Resources) > 0 {
		t.Errorf("the new one inherits the inventory %v", mr.Status.Resources)
	}
	f.reconciler = other
	mr = f.reconcileOK("set")
	f.wantConfigMap("one", "1")
	if !slices.Contains(mr.Finalizers, resourcesv1alpha1.Finalizer+"-seed") {
		t.Errorf("the finalizers are %v", mr.Finalizers)
	}
	f.delete(mr)
}

func TestKeepObjects(t *testing.T) {
	f := newFixture(t)
	mr := f.manage("set", f.configMap("one", "1"))
	patch := client.MergeFrom(mr.DeepCopy())
	mr.Spec.KeepObjects = ptr.To(true)
	must(t, f.client.Patch(f.ctx, mr, patch))
	f.reconcileOK("set")
	f.delete(mr)
	f.wantConfigMap("one", "1")
}

func TestIgnoredIsLeftAlone(t *testing.T) {
	f := newFixture(t)
	mr := f.manage("set", f.configMap("one", "1"))
	patch := client.MergeFrom(mr.DeepCopy())
	mr.Annotations = map[string]string{resourcesv1alpha1.AnnotationIgnore: "True"}
	must(t, f.client.Patch(f.ctx, mr, patch))
	mr, _, err := f.reconcile("set")
	must(t, err)
	f.wantNoConfigMap("one")
	if condition := applied(mr); condition.Status != resourcesv1alpha1.ConditionTrue ||
		condition.Reason != resourcesv1alpha1.ReasonManagedResourceIgnored {
		t.Errorf("ResourcesApplied is %s %s", condition.Status, condition.Reason)
	}
	notIgnored := func() {
		patch := client.MergeFrom(mr.DeepCopy())
		mr.Annotations = nil
		must(t, f.client.Patch(f.ctx, mr, patch))
		f.reconcileOK("set")
	}
	notIgnored()
	f.wantConfigMap("one", "1")

	patch = client.MergeFrom(mr.DeepCopy())
	mr.Annotations = map[string]string{resourcesv1alpha1.AnnotationIgnore: "True"}
	must(t, f.client.Patch(f.ctx, mr, patch))
	mr, _, err = f.reconcile("set")
	must(t, err)
	notIgnored()
	if reason := applied(f.read("set")).Reason; reason != resourcesv1alpha1.ReasonApplySucceeded {
		t.Errorf("nothing changed while it was ignored, but ResourcesApplied still has the reason %s", reason)
	}
}

func TestDeletion_KeepsRecreatedObjects(t *testing.T) {
	f := newFixture(t)
	mr := f.manage("set", f.configMap("one", "1"))
	f.reconcileOK("set")
	must(t, f.client.Delete(f.ctx, f.liveConfigMap("one")))
	foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "one"}, Data: map[string]string{"key": "mine"}}
	must(t, f.client.Create(f.ctx, foreign))
	f.delete(mr)
	f.wantConfigMap("one", "mine")
}

func TestStatusOfOthersIsKept(t *testing.T) {
	f := newFixture(t)
	f.manage("set", f.configMap("one", "1"))
	mr := f.reconcileOK("set")
	mr.Status.Conditions = append(mr.Status.Conditions, resourcesv1alpha1.Condition{
		Type: "TheirsAlone", Status: resourcesv1alpha1.ConditionTrue, Reason: "Test", Message: "fine",
		LastTransitionTime: metav1.Now(), LastUpdateTime: metav1.Now(),
	})
	must(t, f.client.Status().Update(f.ctx, mr, client.FieldOwner("health")))
	f.secret("set", "objects.yaml", f.configMap("one", "1"), "two.yaml", f.configMap("two", "1"))
	mr = f.reconcileOK("set")
	if len(mr.Status.Conditions) != 5 {
		t.Errorf("the conditions are %v", mr.Status.Conditions)
	}
}

func TestOperationReconcile(t *testing.T) {
	f := newFixture(t)
	mr := f.manage("set", f.configMap("one", "1"))
	patch := client.MergeFrom(mr.DeepCopy())
	mr.Annotations = map[string]string{resourcesv1alpha1.AnnotationOperation: resourcesv1alpha1.OperationReconcile}
	must(t, f.client.Patch(f.ctx, mr, patch))
	if mr := f.reconcileOK("set"); len(mr.Annotations) > 0 {
		t.Errorf("the annotations are %v", mr.Annotations)
	}
}
