package shoot

import (
	"context"
	"fmt"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/eventlimit"
	"github.com/trellis-k8s/trellis/pkg/exposure"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/gardenobjects"
	"github.com/trellis-k8s/trellis/pkg/images"
	"github.com/trellis-k8s/trellis/pkg/rotation"
	"github.com/trellis-k8s/trellis/pkg/shoot/care"
	"github.com/trellis-k8s/trellis/pkg/shoot/extensionobjects"
	"github.com/trellis-k8s/trellis/pkg/shoot/restoredgarden"
	"github.com/trellis-k8s/trellis/pkg/shoot/state"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

const (
	fieldManager = "gardenlet"
	// startTimeout limits how long AddToManager reads from the seed.
	startTimeout = 30 * time.Second
	// defaultWorkers is the default number of Shoots that are reconciled concurrently.
	defaultWorkers = 20
	// changesBuffer is how many changes of objects of the garden can be pending, more than any seed needs. A dropped change is read when
	// its Shoot is reconciled again.
	changesBuffer = 1024
)

// AddToManager adds the controller of Shoots to the manager of the seed cluster. The garden's cache contains the Seed and
// the Shoots that refer to it.
func AddToManager(mgr manager.Manager, garden cluster.Cluster, o Options) error {
	if err := o.validate(); err != nil {
		return err
	}
	of, err := newCaches(mgr)
	if err != nil {
		return err
	}
	vector, err := images.FromEnvironment()
	if err != nil {
		return fmt.Errorf("read the list of images: %w", err)
	}
	r := &reconciler{
		seed: mgr.GetClient(), uncached: mgr.GetAPIReader(), garden: garden.GetClient(),
		objects: gardenobjects.New(garden), caches: of, options: o, images: vector,
		events: eventlimit.New(garden.GetEventRecorder("gardenlet"), garden.GetScheme(), o.Clock),
		copied: map[types.UID]copied{}, owners: map[string]types.NamespacedName{},
		rewrites: rotation.Rewriter{FieldManager: fieldManager}, ledgers: &flow.Ledgers{Cached: of.emitted, Uncached: mgr.GetAPIReader()},
		asked: map[types.UID]asked{}, reports: map[types.UID]map[string]extensionReport{},
	}
	r.records = &restoredgarden.Records{
		Ledgers: &flow.Ledgers{Cached: of.emitted, Uncached: mgr.GetAPIReader(), Local: true}, Writer: r.seed, Namespace: o.Namespace, Flow: FlowName, Clock: o.Clock,
	}
	if r.domains, err = newDomains(garden, o.SeedName); err != nil {
		return err
	}
	r.copies = r.objects
	if r.extensions, err = extensionobjects.New(mgr); err != nil {
		return err
	}
	r.emitter = &flow.Emitter{
		Reader: of.indexed, Uncached: r.uncached, Writer: r.seed, FieldManager: fieldManager, Clock: o.Clock,
		Rules:  flow.Rules{Scheme: mgr.GetScheme(), Protected: flow.DefaultProtected(), Version: o.Version},
		Schema: func(ctx context.Context) (*flow.Schema, error) { return flow.ServedSchema(ctx, of.emitted) },
		Pacer:  &flow.Pacer{Pacing: o.pacing(), Clock: o.Clock, OfNodes: changesNodes},
	}
	r.states = &state.Keeper{
		Garden: r.garden, GardenReader: garden.GetAPIReader(), Seed: r.uncached, Identity: identity, FieldManager: fieldManager,
		Period: o.statePeriod(), Clock: o.Clock,
	}
	for _, runnable := range []manager.Runnable{of.emitted, of.material, of.access, r.objects, r.domains} {
		if err := mgr.Add(runnable); err != nil {
			return fmt.Errorf("add a cache of the control planes: %w", err)
		}
	}
	if err := r.watch(mgr, garden); err != nil {
		return err
	}
	if o.storesStates() {
		stateOptions := state.Options{Keeper: r.states, Objects: r.extensions, SeedName: o.SeedName, Workers: o.stateWorkers()}
		if err := state.AddToManager(mgr, garden, stateOptions); err != nil {
			return err
		}
	}
	return care.AddToManager(mgr, garden, of.emitted, of.indexed, r.careOptions())
}

// caches are the caches of the seed cluster: the emitted ManagedResources and manifests, the Secrets that the secrets
// manager generates, and the metadata of the other observed objects. They are separate because they select Secrets by
// different labels.
type caches struct {
	emitted, material, access cache.Cache
	// indexed reads from emitted through an index by owner.
	indexed flow.IndexedReader
}

func newCaches(mgr manager.Manager) (*caches, error) {
	with := func(objects map[client.Object]cache.ByObject) (cache.Cache, error) {
		return watches.NewCache(mgr, "the control planes", cache.Options{ByObject: objects})
	}
	labelled := func(key, value string) cache.ByObject {
		return cache.ByObject{Label: labels.SelectorFromSet(labels.Set{key: value})}
	}
	c := &caches{}
	var err error
	if c.emitted, err = with(flow.CacheOptions(FlowName)); err != nil {
		return nil, err
	}
	material := map[client.Object]cache.ByObject{&corev1.Secret{}: labelled(constants.LabelSecretsManagerIdentity, identity)}
	if c.material, err = with(material); err != nil {
		return nil, err
	}
	services, err := labels.Parse(servicesOfServers)
	if err != nil {
		return nil, fmt.Errorf("make a cache of the control planes: %w", err)
	}
	if c.access, err = with(map[client.Object]cache.ByObject{
		&corev1.Secret{}:    labelled(resourcesv1alpha1.LabelClass, resourcesv1alpha1.ClassShoot),
		&corev1.Namespace{}: labelled(constants.LabelGardenRole, constants.RoleShoot),
		&corev1.Node{}:      {Transform: reduceNode},
		&corev1.Service{}:   {Label: services, Transform: reduceService},
		&admissionregistrationv1.MutatingWebhookConfiguration{}: {},
	}); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	c.indexed, err = flow.IndexOwners(ctx, c.emitted)
	return c, err
}

// servicesOfServers selects the Services of API servers and of gateways.
const servicesOfServers = exposure.LabelApp + " in (kubernetes, " + exposure.GatewayApp + "), role notin (controller-manager, scheduler)"

// reduceNode removes the metadata of a node except its name, because nodes are only counted.
func reduceNode(object any) (any, error) {
	if node, ok := object.(*metav1.PartialObjectMetadata); ok {
		node.Labels, node.Annotations, node.ManagedFields = nil, nil, nil
	}
	return object, nil
}

// watch adds watches of all objects that the plan depends on. Times on which it depends are in its Next.
func (r *reconciler) watch(mgr manager.Manager, garden cluster.Cluster) error {
	workers := defaultWorkers
	if syncs := r.options.controller().ConcurrentSyncs; syncs != nil {
		workers = *syncs
	}
	changes := watches.NewNotifier(changesBuffer)
	r.objects.OnChange(changes.Notify)
	own := flow.EmittedBy(FlowName)
	toOwner := flow.ToOwner()
	built, err := watches.Controller{Name: "shoot", Reconciler: r, Workers: workers}.AddTo(mgr,
		watches.SelfLater(garden.GetCache(), &corev1beta1.Shoot{}, notBegun, predicate.Or(flow.DeclarationChanged(), specChanged())),
		watches.Mapped(garden.GetCache(), &corev1beta1.Seed{}, r.all, seedChanged(r.options.SeedName)),
		watches.Mapped(garden.GetCache(), &corev1beta1.BackupEntry{}, ofEntry, entryChanged()),
		watches.Kind(r.caches.emitted, &resourcesv1alpha1.ManagedResource{}, toOwner, own),
		watches.Kind(r.caches.emitted, watches.MetadataOf("Secret"), toOwner, own),
		watches.Mapped(r.caches.material, &corev1.Secret{}, r.byNamespace),
		watches.Mapped(r.caches.access, watches.MetadataOf("Secret"), r.byNamespace),
		watches.Mapped(r.caches.access, watches.MetadataOf("Namespace"), r.byNamespace, namespaceChanged()),
		watches.Mapped(r.caches.access, &corev1.Service{}, r.ofService),
		watches.Mapped(garden.GetCache(), &corev1beta1.ControllerRegistration{}, r.all, predicate.GenerationChangedPredicate{}),
		watches.Mapped(r.caches.access, &admissionregistrationv1.MutatingWebhookConfiguration{}, r.all, webhooksChanged()),
		watches.Mapped(r.caches.emitted, &resourcesv1alpha1.ManagedResource{}, r.all, extensionChanged()),
		watches.Mapped(r.domains, &corev1.Secret{}, r.all),
		changes.Source(r.using),
		r.emitter.Pacer.Source(),
	)
	if err != nil {
		return err
	}
	return r.extensions.Watch(mgr, built, extensionobjects.Bastions(), handler.EnqueueRequestsFromMapFunc(r.byNamespace))
}

// notBegun reports whether nothing of a control plane exists: the generation of its keys takes a second of CPU time, in which a thousand new Shoots
// would let changes of others wait for minutes.
func notBegun(object client.Object) bool {
	shoot, is := object.(*corev1beta1.Shoot)
	if !is || shoot.DeletionTimestamp != nil {
		return false
	}
	last := shoot.Status.LastOperation
	return last == nil || last.Type == corev1beta1.LastOperationTypeCreate && last.State == corev1beta1.LastOperationStatePending
}

// byNamespace maps the namespace of a control plane, or an object in it, to its Shoot.
func (r *reconciler) byNamespace(_ context.Context, object client.Object) []reconcile.Request {
	name := object.GetNamespace()
	if name == "" {
		name = object.GetName()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if owner, known := r.owners[name]; known {
		return []reconcile.Request{{NamespacedName: owner}}
	}
	return nil // the Shoot has not been reconciled yet
}

// all maps any object to all Shoots of the Seed.
func (r *reconciler) all(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.shoots(ctx)
}

// using maps an object of the garden to the Shoots that may use it: the Shoot whose copy it is, the Shoots of its
// namespace, or all of them. Namespace garden also contains the credentials of DNS services.
func (r *reconciler) using(ctx context.Context, object client.Object) []reconcile.Request {
	for _, find := range []func(client.Object) []reconcile.Request{shootOfCopy, shootOfDocuments} {
		if owner := find(object); owner != nil {
			return owner
		}
	}
	if slices.Contains([]string{"", metav1.NamespaceSystem, constants.GardenNamespace}, object.GetNamespace()) {
		return r.shoots(ctx)
	}
	return r.shoots(ctx, client.InNamespace(object.GetNamespace()))
}

// shoots returns requests for the listed Shoots.
func (r *reconciler) shoots(ctx context.Context, options ...client.ListOption) []reconcile.Request {
	var list corev1beta1.ShootList
	if err := r.garden.List(ctx, &list, options...); err != nil {
		return nil // the cache has not synced, and its watch reports all Shoots once it has
	}
	var requests []reconcile.Request
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}

// seedChanged passes changes of the Seed on which the decision to reconcile a Shoot depends.
func seedChanged(name string) predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, // the watch of Shoots triggers them
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, was := e.ObjectOld.(*corev1beta1.Seed)
			after, is := e.ObjectNew.(*corev1beta1.Seed)
			if !was || !is || after.Name != name {
				return false
			}
			return before.Generation != after.Generation || !equality.Semantic.DeepEqual(before.Annotations, after.Annotations) ||
				before.Status.ObservedGeneration != after.Status.ObservedGeneration ||
				!equality.Semantic.DeepEqual(before.Status.Gardener, after.Status.Gardener) ||
				!equality.Semantic.DeepEqual(statuses(before), statuses(after))
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// statuses returns the statuses of a Seed's conditions, without reasons and messages.
func statuses(seed *corev1beta1.Seed) map[corev1beta1.ConditionType]corev1beta1.ConditionStatus {
	all := map[corev1beta1.ConditionType]corev1beta1.ConditionStatus{}
	for _, condition := range seed.Status.Conditions {
		all[condition.Type] = condition.Status
	}
	return all
}

// specChanged passes changes of the specification, and the end of a Shoot. With confined changes, they do not change the generation, but an
// operation that has not succeeded applies them. A Shoot that ends although it has a finalizer was lost with the garden: see withoutShoot.
func specChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, was := e.ObjectOld.(*corev1beta1.Shoot)
			after, is := e.ObjectNew.(*corev1beta1.Shoot)
			return was && is && (!equality.Semantic.DeepEqual(before.Spec, after.Spec) ||
				!equality.Semantic.DeepEqual(before.Status.InPlaceUpdates, after.Status.InPlaceUpdates))
		},
	}
}

// namespaceChanged passes creations and deletions of namespaces, and changes of their placement.
func namespaceChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return (e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil) ||
			placementOf(e.ObjectOld.GetAnnotations()).spread() != placementOf(e.ObjectNew.GetAnnotations()).spread()
	}}
}
