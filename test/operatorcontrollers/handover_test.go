package operatorcontrollers

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/operatorconfig/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/crds"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/evictionrequirements"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/networkpolicy"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/seedfacts"
	"github.com/trellis-k8s/trellis/pkg/operator/controller"
	ofoperator "github.com/trellis-k8s/trellis/pkg/operator/controller/evictionrequirements"
	policies "github.com/trellis-k8s/trellis/pkg/operator/controller/networkpolicy"
	"github.com/trellis-k8s/trellis/pkg/target"
	"github.com/trellis-k8s/trellis/test/kit"
)

// handOver is a cluster that is a seed, and becomes the runtime cluster of a garden, with what both programs manage in it.
type handOver struct {
	*fixture
	seed   *corev1beta1.Seed
	policy *resourcesv1alpha1.ManagedResource
	scaler *unstructured.Unstructured
}

func newHandOver(t *testing.T) *handOver {
	t.Helper()
	h := &handOver{fixture: newFixture(t)}
	definitions, err := crds.Objects(crds.Values{Groups: []crds.Group{crds.VerticalPodAutoscaler}})
	kit.Must(t, err)
	for _, object := range definitions {
		kit.Must(t, client.IgnoreAlreadyExists(h.client.Create(t.Context(), object)))
	}
	h.seed = example[corev1beta1.Seed](t, "../core/seed")
	h.seed.Name, h.seed.Spec.Backup, h.seed.Spec.Resources, h.seed.Spec.Extensions = "handover", nil, nil, nil
	kit.Must(t, h.client.Create(t.Context(), h.seed))
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "extension-handover-", Labels: map[string]string{"gardener.cloud/role": "extension"}}}
	kit.Must(t, h.client.Create(t.Context(), namespace))
	// Another bundle of gardenlet shows that the cluster is a seed.
	other := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{
		Namespace: "garden", Name: "handover-system", Labels: map[string]string{flow.LabelFlow: "seed", flow.LabelOwner: string(h.seed.UID)},
	}, Spec: resourcesv1alpha1.ManagedResourceSpec{SecretRefs: []resourcesv1alpha1.LocalObjectReference{{Name: "handover-system"}}}}
	kit.Must(t, h.client.Create(t.Context(), other))
	h.scaler = &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler",
		"metadata": map[string]any{
			"namespace": namespace.Name, "name": "one",
			"labels":      map[string]any{"autoscaling.gardener.cloud/eviction-requirements": "managed-by-controller"},
			"annotations": map[string]any{"eviction-requirements.autoscaling.gardener.cloud/downscale-restriction": "never"},
		},
		"spec": map[string]any{"targetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "one"}},
	}}
	kit.Eventually(t, "the API server serves VerticalPodAutoscalers", func() string { return kit.TextOf(h.client.Create(t.Context(), h.scaler)) })
	h.policy = &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "network-policies-" + namespace.Name}}
	t.Cleanup(func() {
		for _, object := range []client.Object{h.scaler, other, namespace, h.seed} {
			kit.Must(t, client.IgnoreNotFound(h.client.Delete(context.WithoutCancel(t.Context()), object)))
		}
	})
	return h
}

// gardenlet runs the controllers of gardenlet, with its selection of ManagedResources.
func (h *handOver) gardenlet() {
	h.Helper()
	options := kit.ManagerOptions(h.scheme)
	options.Cache.ByObject = map[client.Object]cache.ByObject{&resourcesv1alpha1.ManagedResource{}: {Label: networkpolicy.Selector()}}
	mgr, err := manager.New(h.garden.Config(), options)
	kit.Must(h, err)
	garden, err := cluster.New(h.garden.Config(), func(o *cluster.Options) { o.Scheme = h.scheme })
	kit.Must(h, err)
	kit.Must(h, mgr.Add(garden))
	objects, err := target.NewObjects(mgr.GetConfig(), mgr.GetHTTPClient())
	kit.Must(h, err)
	facts := seedfacts.New(mgr.GetConfig(), mgr.GetHTTPClient(), mgr.GetAPIReader(), clock.RealClock{})
	kit.Must(h, facts.Watch(mgr, objects.DynamicClient(), objects.MetadataClient(), objects))
	kit.Must(h, (&networkpolicy.Reconciler{
		Dynamic: objects.DynamicClient(), Metadata: objects.MetadataClient(), Kinds: objects, Clock: clock.RealClock{},
		Options: networkpolicy.Options{Namespace: "garden", Version: "v1", FieldManager: "gardenlet"},
	}).ForSeed(garden.GetCache(), h.seed.Name, facts).AddToManager(mgr))
	kit.Must(h, (&evictionrequirements.Reconciler{
		Dynamic: objects.DynamicClient(), Metadata: objects.MetadataClient(), Kinds: objects, Clock: clock.RealClock{},
		ConcurrentSyncs: 1, FieldManager: "gardenlet", Facts: facts,
	}).AddToManager(mgr))
	kit.Run(h, mgr)
}

// operator runs the controllers of the operator that need a Garden.
func (h *handOver) operator() (stop func()) {
	h.Helper()
	mgr, err := manager.New(h.garden.Config(), kit.ManagerOptions(h.scheme))
	kit.Must(h, err)
	config := &v1alpha1.OperatorConfiguration{}
	v1alpha1.SetDefaults(config)
	kit.Must(h, controller.Set{policies.Controller(), ofoperator.Controller()}.Add(h.Context(), controller.Deps{
		Manager: mgr, Recorder: events.NewFakeRecorder(100), Clock: clock.RealClock{}, Config: config, Version: "v1", Namespace: "garden",
	}, controller.WithGarden))
	return kit.Run(h, mgr)
}

// ownedBy waits until the policies belong to an owner, and returns the UID of their ManagedResource.
func (h *handOver) ownedBy(name string, uid string) string {
	h.Helper()
	kit.Eventually(h, "the policies belong to "+name, func() string {
		if err := h.client.Get(h.Context(), client.ObjectKeyFromObject(h.policy), h.policy); err != nil {
			return err.Error()
		}
		if owner := h.policy.Labels[flow.LabelOwner]; owner != uid || h.policy.DeletionTimestamp != nil {
			return fmt.Sprintf("they belong to %q, and are being deleted: %t", owner, h.policy.DeletionTimestamp != nil)
		}
		return ""
	})
	return string(h.policy.UID)
}

// restricts removes the requirements of the VerticalPodAutoscaler, and waits until a program has restored them.
func (h *handOver) restricts(program string) {
	h.Helper()
	kit.Eventually(h, program+" restricts evictions", func() string {
		if err := h.client.Get(h.Context(), client.ObjectKeyFromObject(h.scaler), h.scaler); err != nil {
			return err.Error()
		}
		_, restricted, err := unstructured.NestedSlice(h.scaler.Object, "spec", "updatePolicy", "evictionRequirements")
		if err != nil || !restricted {
			return fmt.Sprintf("there are no requirements: %v", err)
		}
		for _, entry := range h.scaler.GetManagedFields() {
			if entry.Manager == program {
				return ""
			}
		}
		unstructured.RemoveNestedField(h.scaler.Object, "spec", "updatePolicy")
		return "another program does: " + kit.TextOf(h.client.Update(h.Context(), h.scaler, client.FieldOwner("test")))
	})
}

// TestHandOver checks that gardenlet hands over what the operator manages when a Garden appears in the cluster of a seed, and takes it over when the
// Garden goes and the seed stays. The ManagedResource is never deleted.
func TestHandOver(t *testing.T) {
	h := newHandOver(t)
	h.gardenlet()
	first := h.ownedBy("the Seed", string(h.seed.UID))
	h.restricts("gardenlet")
	// The resource-manager has applied it.
	before := client.MergeFrom(h.policy.DeepCopy())
	h.policy.Status.Resources = []resourcesv1alpha1.ObjectReference{{}}
	h.policy.Status.Resources[0].APIVersion, h.policy.Status.Resources[0].Kind = "networking.k8s.io/v1", "NetworkPolicy"
	h.policy.Status.Resources[0].Namespace, h.policy.Status.Resources[0].Name = h.scaler.GetNamespace(), "deny-all"
	kit.Must(t, h.client.Status().Patch(t.Context(), h.policy, before))

	garden := example[operatorv1alpha1.Garden](t, "garden")
	garden.Name, garden.Finalizers = "handover", []string{"example.org/test"}
	kit.Must(t, h.client.Create(t.Context(), garden))
	defer h.remove(garden)
	h.ownedBy("nobody", "")
	stop := h.operator()
	if uid := h.ownedBy("the Garden", string(garden.UID)); uid != first {
		t.Errorf("the ManagedResource was created again: %s, %s", first, uid)
	}
	h.restricts("gardener-operator")

	kit.Change(t, h.client, garden, func() {
		metav1.SetMetaDataAnnotation(&garden.ObjectMeta, "confirmation.gardener.cloud/deletion", "true")
	})
	kit.Must(t, h.client.Delete(t.Context(), garden))
	h.ownedBy("nobody", "")
	stop()
	kit.Must(t, h.client.Get(t.Context(), client.ObjectKeyFromObject(garden), garden))
	kit.Change(t, h.client, garden, func() { controllerutil.RemoveFinalizer(garden, "example.org/test") })
	if uid := h.ownedBy("the Seed", string(h.seed.UID)); uid != first {
		t.Errorf("the ManagedResource was created again: %s, %s", first, uid)
	}
	h.restricts("gardenlet")
}
