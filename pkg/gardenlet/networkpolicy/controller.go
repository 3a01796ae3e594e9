package networkpolicy

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/networkpolicies"
	"github.com/trellis-k8s/trellis/pkg/crdwatch"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/requeue"
)

// ControllerName names the controller in logs and metrics.
const ControllerName = "networkpolicy"

// Options are the options of the controller.
type Options struct {
	// SeedName is the name of the Seed in the garden. Namespace is the namespace of the ManagedResources in the seed.
	SeedName, Namespace string
	// AdditionalSelectors select additional namespaces that get policies.
	AdditionalSelectors []metav1.LabelSelector
	// Version of the program.
	Version string
}

// Reconciler emits the policies of all namespaces. It is ready to use when its fields are set.
type Reconciler struct {
	// Garden contains the Seed.
	Garden   cache.Cache
	Dynamic  dynamic.Interface
	Metadata metadata.Interface
	Kinds    crdwatch.Kinds
	Clock    clock.PassiveClock
	Options  Options

	seed     client.Reader
	emitter  *flow.Emitter
	clusters *crdwatch.Watch
	// wake triggers a reconcile.
	wake chan event.TypedGenericEvent[struct{}]
}

// all is the only request. A reconcile handles all namespaces.
var all = reconcile.Request{NamespacedName: types.NamespacedName{Name: "all"}}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// AddToManager adds the controller to the manager of the seed.
func (r *Reconciler) AddToManager(mgr manager.Manager) error {
	r.seed = mgr.GetClient()
	r.emitter = &flow.Emitter{
		Reader: mgr.GetClient(), Uncached: mgr.GetAPIReader(), Writer: mgr.GetClient(), FieldManager: "gardenlet", Clock: r.Clock,
		Rules: flow.Rules{Scheme: mgr.GetScheme(), Protected: flow.DefaultProtected(), Version: r.Options.Version},
	}
	r.wake = make(chan event.TypedGenericEvent[struct{}], 1)
	r.clusters = crdwatch.New(crdwatch.Options{
		Dynamic: r.Dynamic, Metadata: r.Metadata, Kinds: r.Kinds, Namespaces: []string{metav1.NamespaceAll},
		Resource: extensionsv1alpha1.SchemeGroupVersion.WithResource("clusters"), Kind: "Cluster",
		Reduce: reduceCluster, OnEvent: func(any) { r.look() }, OnKnown: r.look, Affected: "network policies of Shoots",
	})
	requestAll := []reconcile.Request{all}
	toAll := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return requestAll })
	isSeed := predicate.NewTypedPredicateFuncs(func(seed *gardencorev1beta1.Seed) bool { return seed.Name == r.Options.SeedName })
	seedChanged := predicate.And(isSeed, predicate.TypedGenerationChangedPredicate[*gardencorev1beta1.Seed]{})
	isEmitted := flow.EmittedBy(FlowName)
	return builder.ControllerManagedBy(mgr).
		Named(ControllerName).
		Watches(&corev1.Namespace{}, toAll).
		Watches(&discoveryv1.EndpointSlice{}, toAll).
		Watches(&resourcesv1alpha1.ManagedResource{}, toAll, builder.WithPredicates(isEmitted)).
		WatchesMetadata(&corev1.Secret{}, toAll, builder.WithPredicates(isEmitted)).
		WatchesRawSource(source.Kind(r.Garden, &gardencorev1beta1.Seed{},
			handler.TypedEnqueueRequestsFromMapFunc(func(context.Context, *gardencorev1beta1.Seed) []reconcile.Request { return requestAll }),
			seedChanged)).
		WatchesRawSource(source.TypedChannel(r.wake, handler.TypedFuncs[struct{}, reconcile.Request]{
			GenericFunc: func(_ context.Context, _ event.TypedGenericEvent[struct{}], q queue) { q.Add(all) },
		})).
		WatchesRawSource(source.Func(func(ctx context.Context, _ queue) error { return r.clusters.Start(ctx) })).
		Complete(r)
}

// look triggers a reconcile, unless one is pending.
func (r *Reconciler) look() {
	select {
	case r.wake <- event.TypedGenericEvent[struct{}]{}:
	default:
	}
}

// cluster contains the relevant fields of a Cluster.
type cluster struct {
	metav1.ObjectMeta
	// shoot only contains networks. It is nil if the Cluster contains no valid Shoot.
	shoot *gardencorev1beta1.Shoot
}

// reduceCluster returns the relevant fields of a Cluster.
func reduceCluster(object *unstructured.Unstructured) any {
	kept := &cluster{ObjectMeta: metav1.ObjectMeta{Name: object.GetName(), ResourceVersion: object.GetResourceVersion()}}
	raw, found, err := unstructured.NestedMap(object.Object, "spec", "shoot")
	if err != nil || !found {
		return kept
	}
	shoot := &gardencorev1beta1.Shoot{}
	content, err := json.Marshal(raw)
	if err != nil || json.Unmarshal(content, shoot) != nil {
		return kept
	}
	kept.shoot = &gardencorev1beta1.Shoot{
		Spec:   gardencorev1beta1.ShootSpec{Networking: shoot.Spec.Networking},
		Status: gardencorev1beta1.ShootStatus{Networking: shoot.Status.Networking},
	}
	return kept
}

// Reconcile makes a plan for all namespaces and emits it.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	seed := &gardencorev1beta1.Seed{}
	if err := r.Garden.Get(ctx, client.ObjectKey{Name: r.Options.SeedName}, seed); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	owner := flow.Owner{Flow: FlowName, UID: seed.UID, Name: seed.Name}
	inputs, err := r.observe(ctx, seed, owner)
	if err != nil {
		return reconcile.Result{}, err
	}
	plan, err := Plan(inputs)
	if err != nil {
		return reconcile.Result{}, err
	}
	result, err := r.emitter.Emit(ctx, owner, plan)
	if err != nil {
		return reconcile.Result{}, err
	}
	now := r.Clock.Now()
	return requeue.At(result.Plan.NextAt(now), now), nil
}

// observe reads the inputs from caches.
func (r *Reconciler) observe(ctx context.Context, seed *gardencorev1beta1.Seed, owner flow.Owner) (Inputs, error) {
	inputs := Inputs{
		Namespace: r.Options.Namespace, Networks: seed.Spec.Networks, Deleting: seed.DeletionTimestamp != nil,
		AdditionalSelectors: r.Options.AdditionalSelectors,
	}
	var namespaces corev1.NamespaceList
	var slices discoveryv1.EndpointSliceList
	var emitted resourcesv1alpha1.ManagedResourceList
	if err := r.seed.List(ctx, &namespaces); err != nil {
		return inputs, fmt.Errorf("list the namespaces of the seed: %w", err)
	}
	err := r.seed.List(
		ctx, &slices, client.InNamespace(metav1.NamespaceDefault), client.MatchingLabels{discoveryv1.LabelServiceName: "kubernetes"},
	)
	if err != nil {
		return inputs, fmt.Errorf("read the addresses of the seed's API server: %w", err)
	}
	err = r.seed.List(ctx, &emitted, client.InNamespace(r.Options.Namespace), owner.Labels())
	if err != nil {
		return inputs, fmt.Errorf("list the ManagedResources with network policies: %w", err)
	}
	inputs.APIServers = networkpolicies.APIServers(slices.Items)
	for i := range namespaces.Items {
		if namespace := &namespaces.Items[i]; namespace.DeletionTimestamp == nil {
			inputs.Namespaces = append(inputs.Namespaces, Namespace{namespace.Name, namespace.Labels, r.shootOf(namespace.Name)})
		}
	}
	for i := range emitted.Items {
		inputs.Emitted = append(inputs.Emitted, flow.Key{Namespace: emitted.Items[i].Namespace, Name: emitted.Items[i].Name})
	}
	return inputs, nil
}

// shootOf returns the Shoot whose control plane is in a namespace, or nil if it is not known.
func (r *Reconciler) shootOf(namespace string) *gardencorev1beta1.Shoot {
	if !r.clusters.Known() {
		return nil
	}
	if found, ok := r.clusters.Get(types.NamespacedName{Name: namespace}).(*cluster); ok {
		return found.shoot
	}
	return nil
}
