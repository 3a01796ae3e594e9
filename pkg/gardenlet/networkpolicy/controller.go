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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/networkpolicies"
	"github.com/trellis-k8s/trellis/pkg/crdwatch"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/seedfacts"
	"github.com/trellis-k8s/trellis/pkg/requeue"
)

// ControllerName names the controller in logs and metrics.
const ControllerName = "networkpolicy"

// Subject is whose cluster the policies protect: a Seed or a Garden.
type Subject struct {
	UID  types.UID
	Name string
	// Networks of the cluster.
	Networks networkpolicies.Networks
	// Deleting is set if it is being deleted. Released is set if another program manages the policies.
	Deleting, Released bool
}

// Options are the options of the controller.
type Options struct {
	// Namespace is the namespace of the ManagedResources.
	Namespace string
	// AdditionalSelectors select additional namespaces that get policies.
	AdditionalSelectors []metav1.LabelSelector
	// Version of the program, and the FieldManager of its writes.
	Version, FieldManager string
	// OfGarden is set if the Subject is a Garden.
	OfGarden bool
}

// Reconciler emits the policies of all namespaces. It is ready to use when its fields are set.
type Reconciler struct {
	// Subject returns the Seed or the Garden; nil if it does not exist. Changes are watches of it.
	Subject func(context.Context) (*Subject, error)
	Changes []source.Source
	// Facts report when the program that manages the policies changes; nil if it never does.
	Facts    *seedfacts.Reader
	Dynamic  dynamic.Interface
	Metadata metadata.Interface
	Kinds    crdwatch.Kinds
	Clock    clock.PassiveClock
	Options  Options

	cluster  client.Reader
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
	r.cluster = mgr.GetClient()
	r.emitter = &flow.Emitter{
		Reader: mgr.GetClient(), Uncached: mgr.GetAPIReader(), Writer: mgr.GetClient(), FieldManager: r.Options.FieldManager, Clock: r.Clock,
		Rules: flow.Rules{Scheme: mgr.GetScheme(), Protected: flow.DefaultProtected(), Version: r.Options.Version},
	}
	r.wake = make(chan event.TypedGenericEvent[struct{}], 1)
	r.clusters = crdwatch.New(crdwatch.Options{
		Dynamic: r.Dynamic, Metadata: r.Metadata, Kinds: r.Kinds, Namespaces: []string{metav1.NamespaceAll},
		Resource: extensionsv1alpha1.SchemeGroupVersion.WithResource("clusters"), Kind: "Cluster",
		Reduce: reduceCluster, OnEvent: func(any) { r.look() }, OnKnown: r.look, Affected: "network policies of Shoots",
	})
	toAll := ToAll()
	isEmitted := flow.EmittedBy(FlowName)
	if r.Facts != nil {
		r.Facts.OnChange(r.look)
	}
	built := builder.ControllerManagedBy(mgr).
		Named(ControllerName).
		Watches(&corev1.Namespace{}, toAll).
		Watches(&discoveryv1.EndpointSlice{}, toAll).
		Watches(&resourcesv1alpha1.ManagedResource{}, toAll, builder.WithPredicates(isEmitted)).
		WatchesMetadata(&corev1.Secret{}, toAll, builder.WithPredicates(isEmitted)).
		WatchesRawSource(source.TypedChannel(r.wake, handler.TypedFuncs[struct{}, reconcile.Request]{
			GenericFunc: func(_ context.Context, _ event.TypedGenericEvent[struct{}], q queue) { q.Add(all) },
		})).
		WatchesRawSource(source.Func(func(ctx context.Context, _ queue) error { return r.clusters.Start(ctx) }))
	for _, changes := range r.Changes {
		built = built.WatchesRawSource(changes)
	}
	return built.Complete(r)
}

// ToAll maps each object to the only request, for [Reconciler.Changes].
func ToAll() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{all} })
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
	subject, err := r.Subject(ctx)
	if err != nil || subject == nil {
		return reconcile.Result{}, err
	}
	owner := flow.Owner{Flow: FlowName, UID: subject.UID, Name: subject.Name}
	inputs, err := r.observe(ctx, subject, owner)
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
func (r *Reconciler) observe(ctx context.Context, subject *Subject, owner flow.Owner) (Inputs, error) {
	inputs := Inputs{
		Namespace: r.Options.Namespace, Networks: subject.Networks, Deleting: subject.Deleting, Released: subject.Released,
		AdditionalSelectors: r.Options.AdditionalSelectors, OfGarden: r.Options.OfGarden,
	}
	var namespaces corev1.NamespaceList
	var slices discoveryv1.EndpointSliceList
	var emitted resourcesv1alpha1.ManagedResourceList
	if err := r.cluster.List(ctx, &namespaces); err != nil {
		return inputs, fmt.Errorf("list the namespaces of the cluster: %w", err)
	}
	err := r.cluster.List(
		ctx, &slices, client.InNamespace(metav1.NamespaceDefault), client.MatchingLabels{discoveryv1.LabelServiceName: "kubernetes"},
	)
	if err != nil {
		return inputs, fmt.Errorf("read the addresses of the API server of the cluster: %w", err)
	}
	err = r.cluster.List(ctx, &emitted, client.InNamespace(r.Options.Namespace), owner.Labels())
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
