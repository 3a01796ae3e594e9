package seed

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/etcdoperator"
	"github.com/trellis-k8s/trellis/pkg/component/resourcemanager"
	"github.com/trellis-k8s/trellis/pkg/dnsvalues"
	"github.com/trellis-k8s/trellis/pkg/eventlimit"
	"github.com/trellis-k8s/trellis/pkg/exposure"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/flow/breakglass"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/backup"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/backupbucket"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/backupentry"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/bastion"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/gardenobjects"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/seedfacts"
	"github.com/trellis-k8s/trellis/pkg/images"
	"github.com/trellis-k8s/trellis/pkg/requeue"
	"github.com/trellis-k8s/trellis/pkg/secrets"
	"github.com/trellis-k8s/trellis/pkg/seed/care"
	"github.com/trellis-k8s/trellis/pkg/stalepods"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

const (
	fieldManager = "gardenlet"
	// startTimeout limits the time for reads from the seed at startup.
	startTimeout = 30 * time.Second
)

// AddToManager adds the controllers of the Seed to the manager of the seed cluster. The garden cluster's cache contains
// the Seed, the ControllerRegistrations, and the ControllerInstallations and BackupBuckets of the Seed. Objects of the
// seed cluster are read through separate caches that contain only the objects the flow needs.
func AddToManager(mgr manager.Manager, garden cluster.Cluster, o Options) error {
	if err := o.validate(); err != nil {
		return err
	}
	caches, err := newCaches(mgr, o)
	if err != nil {
		return err
	}
	r, err := newReconciler(mgr, garden, o, caches)
	if err != nil {
		return err
	}
	for _, runnable := range []manager.Runnable{caches.seed, caches.material, r.objects} {
		if err := mgr.Add(runnable); err != nil {
			return fmt.Errorf("add a cache of the seed: %w", err)
		}
	}
	if err := r.watch(mgr, garden, caches); err != nil {
		return err
	}
	careOptions := care.Options{SeedName: o.SeedName, Clock: o.Clock}
	if controllers := o.Config.Controllers; controllers != nil && controllers.SeedCare != nil {
		careOptions.Thresholds = controllers.SeedCare.ConditionThresholds
	}
	if err := care.AddToManager(mgr, garden, caches.seed, careOptions); err != nil {
		return err
	}
	recorder := eventlimit.New(mgr.GetEventRecorder(fieldManager), mgr.GetScheme(), o.Clock)
	if err := breakglass.AddToManager(mgr, breakGlass(o.Namespace), recorder, o.Clock); err != nil {
		return err
	}
	return addBackups(mgr, garden, o, caches, r)
}

// addBackups adds the controllers of BackupBuckets, BackupEntries and Bastions, which emit one extension object each.
func addBackups(mgr manager.Manager, garden cluster.Cluster, o Options, of *caches, r *reconciler) error {
	emitter := func() *flow.Emitter {
		return &flow.Emitter{
			Reader: of.emitted, Uncached: r.uncached, Writer: r.seed, FieldManager: fieldManager, Clock: o.Clock,
			Rules: r.emitter.Rules, Schema: r.emitter.Schema,
		}
	}
	seed := func() *backup.Seed {
		return &backup.Seed{
			Name: o.SeedName, Namespace: o.Namespace, Client: r.seed, Uncached: r.uncached, Emitted: of.emitted, Emitter: emitter(),
			Garden: r.garden, GardenReader: garden.GetAPIReader(), Objects: r.objects, Clock: o.Clock,
		}
	}
	controllers := ptr.Deref(o.Config.Controllers, gardenletv1alpha1.ControllersConfiguration{})
	var ofBuckets, ofEntries *int
	if controllers.BackupBucket != nil {
		ofBuckets = controllers.BackupBucket.ConcurrentSyncs
	}
	if controllers.BackupEntry != nil {
		ofEntries = controllers.BackupEntry.ConcurrentSyncs
	}
	if err := backupbucket.AddToManager(mgr, garden, of.seed, seed(), ptr.Deref(ofBuckets, 1)); err != nil {
		return err
	}
	if err := backupentry.AddToManager(mgr, garden, of.seed, seed(), controllers.BackupEntry, ptr.Deref(ofEntries, 1)); err != nil {
		return err
	}
	return bastion.AddToManager(mgr, garden, of.seed, seed(), controllers.Bastion)
}

// caches are the caches of the seed cluster. There are two because they select different Secrets.
type caches struct {
	seed cache.Cache
	// material contains the Secrets that gardenlet generates.
	material cache.Cache
	// emitted is the seed cache with an index by owner.
	emitted flow.IndexedReader
}

func newCaches(mgr manager.Manager, o Options) (*caches, error) {
	emitted, err := labels.NewRequirement(flow.LabelFlow, selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	serving, err := labels.Parse(servingServices)
	if err != nil {
		return nil, fmt.Errorf("parse the selector of Services: %w", err)
	}
	var components map[string]cache.Config
	for _, namespace := range append(care.Namespaces(), o.Namespace) {
		if components == nil {
			components = map[string]cache.Config{}
		}
		components[namespace] = cache.Config{}
	}
	c := &caches{}
	if c.seed, err = watches.NewCache(mgr, "the seed", cache.Options{
		ByObject: map[client.Object]cache.ByObject{
			&resourcesv1alpha1.ManagedResource{}: {Namespaces: components},
			&corev1.Secret{}: {Namespaces: map[string]cache.Config{o.Namespace: {
				LabelSelector: labels.NewSelector().Add(*emitted),
			}}},
			&corev1.ConfigMap{}: {Namespaces: map[string]cache.Config{metav1.NamespaceSystem: {
				FieldSelector: fields.OneTermEqualSelector("metadata.name", constants.ClusterIdentityName),
			}}},
			&discoveryv1.EndpointSlice{}: {Namespaces: map[string]cache.Config{metav1.NamespaceDefault: {
				LabelSelector: labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: "kubernetes"}),
			}}},
			&corev1.Pod{}:     {Transform: stalepods.Reduce},
			&corev1.Service{}: {Label: serving, Transform: reduceService},
			&apiextensionsv1.CustomResourceDefinition{}: {Transform: flow.DropSchemas},
		},
	}); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if c.emitted, err = flow.IndexOwners(ctx, c.seed); err != nil {
		return nil, err
	}
	c.material, err = watches.NewCache(mgr, "the Secrets of gardenlet", cache.Options{
		ByObject: map[client.Object]cache.ByObject{&corev1.Secret{}: {Namespaces: map[string]cache.Config{o.Namespace: {
			LabelSelector: labels.SelectorFromSet(labels.Set{constants.LabelSecretsManagerIdentity: identity}),
		}}}},
	})
	return c, err
}

func newReconciler(mgr manager.Manager, garden cluster.Cluster, o Options, of *caches) (*reconciler, error) {
	vector, err := images.FromEnvironmentWith(etcdoperator.ComponentName, etcdoperator.ImageMember)
	if err != nil {
		return nil, fmt.Errorf("read the list of images: %w", err)
	}
	r := &reconciler{
		seed: mgr.GetClient(), uncached: mgr.GetAPIReader(), cache: of.seed, garden: garden.GetClient(), gardenUncached: garden.GetAPIReader(),
		objects: gardenobjects.New(garden), options: o, images: vector, facts: o.Facts,
		events: eventlimit.New(garden.GetEventRecorder("gardenlet"), garden.GetScheme(), o.Clock),
	}
	if r.facts == nil {
		r.facts = seedfacts.New(mgr.GetConfig(), mgr.GetHTTPClient(), r.uncached, o.Clock)
	}
	r.secrets = &secrets.Manager{
		Reader: of.material, Uncached: r.uncached, Writer: r.seed, Namespace: o.Namespace, Identity: identity, Clock: o.Clock,
	}
	r.emitter = &flow.Emitter{
		Reader: of.emitted, Uncached: r.uncached, Writer: r.seed, FieldManager: fieldManager, Clock: o.Clock,
		Rules:  flow.Rules{Scheme: mgr.GetScheme(), Protected: flow.DefaultProtected(), Version: o.Version},
		Schema: func(ctx context.Context) (*flow.Schema, error) { return flow.ServedSchema(ctx, of.seed) },
	}
	return r, nil
}

// watch adds watches for all inputs of the plan. Time-based changes are scheduled by Plan.Next.
func (r *reconciler) watch(mgr manager.Manager, garden cluster.Cluster, of *caches) error {
	toSeed := watches.To(reconcile.Request{NamespacedName: types.NamespacedName{Name: r.options.SeedName}})
	changed := watches.NewNotifier(1)
	r.objects.OnChange(changed.Notify)
	r.facts.OnChange(changed.Wake)
	ownSeed := predicate.NewPredicateFuncs(func(object client.Object) bool { return object.GetName() == r.options.SeedName })
	own := flow.EmittedBy(FlowName)
	_, err := watches.Controller{Name: "seed", Reconciler: r, Workers: 1, RateLimiter: requeue.Backoff()}.AddTo(mgr,
		watches.Mapped(garden.GetCache(), &corev1beta1.Seed{}, toSeed, ownSeed, flow.DeclarationChanged()),
		watches.Mapped(garden.GetCache(), &corev1beta1.ControllerInstallation{}, toSeed, conditionsChanged()),
		watches.Mapped(garden.GetCache(), &corev1beta1.ControllerRegistration{}, toSeed, predicate.GenerationChangedPredicate{}),
		watches.Mapped(garden.GetCache(), &corev1beta1.BackupBucket{}, toSeed),
		watches.Mapped(of.seed, &resourcesv1alpha1.ManagedResource{}, toSeed, own),
		watches.Mapped(of.seed, watches.MetadataOf("Secret"), toSeed, own),
		watches.Mapped(of.material, &corev1.Secret{}, toSeed),
		watches.Mapped(of.seed, &corev1.ConfigMap{}, toSeed),
		watches.Mapped(of.seed, &discoveryv1.EndpointSlice{}, toSeed),
		watches.Mapped(of.seed, &apiextensionsv1.CustomResourceDefinition{}, toSeed, createdOrDeleted(managedResources)),
		watches.Mapped(of.seed, watches.MetadataOf("Node"), toSeed, createdOrDeleted("")),
		watches.Mapped(of.seed, &corev1.Service{}, toSeed, serviceChanged()),
		changed.Source(toSeed),
	)
	return err
}

// managedResources is the definition whose schema the flow reads.
const managedResources = "managedresources." + resourcesv1alpha1.GroupName

// servingServices selects the Services of API servers, which name their gateways, of gateways, and of the ingress controller.
const servingServices = exposure.LabelApp + " in (kubernetes, " + exposure.GatewayApp + ", nginx-ingress), role notin (controller-manager, scheduler)"

// reduceService keeps what the flow reads of a Service. Annotations of API servers name their gateways.
func reduceService(object any) (any, error) {
	service, ok := object.(*corev1.Service)
	if !ok {
		return object, nil
	}
	reduced := dnsvalues.Reduce(service)
	reduced.Annotations = service.Annotations
	return reduced, nil
}

// serviceChanged drops updates of a Service that change neither its annotations nor its addresses.
func serviceChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*corev1.Service)
		after, same := e.ObjectNew.(*corev1.Service)
		return !ok || !same || !maps.Equal(before.Annotations, after.Annotations) || !slices.Equal(dnsvalues.AddressesOf(before), dnsvalues.AddressesOf(after))
	}}
}

// conditionsChanged drops updates of a ControllerInstallation that do not change its conditions.
func conditionsChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*corev1beta1.ControllerInstallation)
		after, same := e.ObjectNew.(*corev1beta1.ControllerInstallation)
		return !ok || !same || !equality.Semantic.DeepEqual(before.Status.Conditions, after.Status.Conditions)
	}}
}

// createdOrDeleted passes creations and deletions, and spec changes of the object with the given name, if any.
func createdOrDeleted(always string) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return always != "" && e.ObjectNew.GetName() == always && e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration()
	}}
}

// breakGlass returns the options with which gardenlet applies the resource-manager of the seed if it is down.
func breakGlass(namespace string) breakglass.Options {
	return breakglass.Options{
		Namespace: namespace, Lease: resourcemanager.Name, Deployment: resourcemanager.Name, ManagedResource: bundleResourceManager,
		Flow: FlowName, FieldManager: fieldManager, StaleAfter: breakglass.DefaultStaleAfter,
	}
}
