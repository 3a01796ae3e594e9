package garden

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/etcdoperator"
	"github.com/trellis-k8s/trellis/pkg/component/resourcemanager"
	"github.com/trellis-k8s/trellis/pkg/eventlimit"
	"github.com/trellis-k8s/trellis/pkg/exposure"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/flow/breakglass"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/seedfacts"
	"github.com/trellis-k8s/trellis/pkg/images"
	"github.com/trellis-k8s/trellis/pkg/requeue"
	"github.com/trellis-k8s/trellis/pkg/rotation"
	"github.com/trellis-k8s/trellis/pkg/secrets"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

// startTimeout limits the time for reads at startup.
const startTimeout = 30 * time.Second

// managedResources is the definition whose schema the flow reads.
const managedResources = "managedresources." + resourcesv1alpha1.GroupName

// AddToManager adds the controller of Gardens to the manager of the runtime cluster, and the one that installs its resource-manager.
func AddToManager(mgr manager.Manager, o Options) error {
	if err := o.validate(); err != nil {
		return err
	}
	caches, err := newCaches(mgr, o)
	if err != nil {
		return err
	}
	r, err := newReconciler(mgr, o, caches)
	if err != nil {
		return err
	}
	for _, each := range []cache.Cache{caches.runtime, caches.material, caches.others} {
		if err := mgr.Add(each); err != nil {
			return fmt.Errorf("add a cache of the runtime cluster: %w", err)
		}
	}
	if err := r.watch(mgr, caches); err != nil {
		return err
	}
	return breakglass.AddToManager(mgr, breakglass.Options{
		Namespace: o.Namespace, Lease: resourcemanager.Name, Deployment: resourcemanager.Name, ManagedResource: bundleManager,
		Flow: FlowName, FieldManager: fieldManager, StaleAfter: breakglass.DefaultStaleAfter, Installs: true,
	}, r.events, o.Clock)
}

// caches are the caches of the runtime cluster. There are three because they select different Secrets.
type caches struct {
	runtime cache.Cache
	// emitted is the cache runtime with an index by owner.
	emitted flow.IndexedReader
	// material contains the Secrets that the operator generates.
	material cache.Cache
	// others contains the metadata of the other Secrets and ConfigMaps in the namespace: those that the Garden refers to, and those with tokens.
	others cache.Cache
}

func newCaches(mgr manager.Manager, o Options) (*caches, error) {
	emitted, err := labels.NewRequirement(flow.LabelFlow, selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	notEmitted, err := labels.NewRequirement(flow.LabelFlow, selection.DoesNotExist, nil)
	if err != nil {
		return nil, err
	}
	notMaterial, err := labels.NewRequirement(constants.LabelSecretsManagerIdentity, selection.DoesNotExist, nil)
	if err != nil {
		return nil, err
	}
	inNamespace := func(selector labels.Selector) cache.ByObject {
		return cache.ByObject{Namespaces: map[string]cache.Config{o.Namespace: {LabelSelector: selector}}}
	}
	build := func(name string, kinds map[client.Object]cache.ByObject) (cache.Cache, error) {
		return watches.NewCache(mgr, name, cache.Options{ByObject: kinds})
	}
	c := &caches{}
	if c.runtime, err = build("the runtime cluster", map[client.Object]cache.ByObject{
		&resourcesv1alpha1.ManagedResource{}:        inNamespace(labels.Everything()),
		&corev1.Service{}:                           {Namespaces: map[string]cache.Config{o.Namespace: {}, exposure.GardenGatewayNamespace: {}}},
		&corev1.Secret{}:                            inNamespace(labels.NewSelector().Add(*emitted)),
		&apiextensionsv1.CustomResourceDefinition{}: {Transform: flow.DropSchemas},
	}); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if c.emitted, err = flow.IndexOwners(ctx, c.runtime); err != nil {
		return nil, err
	}
	if c.material, err = build("generated Secrets", map[client.Object]cache.ByObject{
		&corev1.Secret{}: inNamespace(labels.SelectorFromSet(labels.Set{constants.LabelSecretsManagerIdentity: identity})),
	}); err != nil {
		return nil, err
	}
	c.others, err = build("Secrets and ConfigMaps of the namespace", map[client.Object]cache.ByObject{
		watches.MetadataOf("Secret"):    inNamespace(labels.NewSelector().Add(*notEmitted, *notMaterial)),
		watches.MetadataOf("ConfigMap"): inNamespace(labels.NewSelector().Add(*notEmitted)),
	})
	return c, err
}

func newReconciler(mgr manager.Manager, o Options, of *caches) (*reconciler, error) {
	vector, err := images.FromEnvironmentWith(etcdoperator.ComponentName, etcdoperator.ImageMember)
	if err != nil {
		return nil, fmt.Errorf("read the list of images: %w", err)
	}
	r := &reconciler{
		runtime: mgr.GetClient(), uncached: mgr.GetAPIReader(), caches: of, options: o, images: vector, facts: o.Facts,
		rewrites: rotation.Rewriter{FieldManager: fieldManager}, ledgers: &flow.Ledgers{Cached: of.runtime, Uncached: mgr.GetAPIReader()},
		events: eventlimit.New(mgr.GetEventRecorder(fieldManager), mgr.GetScheme(), o.Clock),
	}
	if r.facts == nil {
		r.facts = seedfacts.New(mgr.GetConfig(), mgr.GetHTTPClient(), r.uncached, o.Clock)
	}
	r.secrets = &secrets.Manager{
		Reader: of.material, Uncached: r.uncached, Writer: r.runtime, Namespace: o.Namespace, Identity: identity, Clock: o.Clock,
	}
	r.emitter = &flow.Emitter{
		Reader: of.emitted, Uncached: r.uncached, Writer: r.runtime, FieldManager: fieldManager, Clock: o.Clock,
		Rules:  flow.Rules{Scheme: mgr.GetScheme(), Protected: flow.DefaultProtected(), Version: o.Version},
		Schema: func(ctx context.Context) (*flow.Schema, error) { return flow.ServedSchema(ctx, of.runtime) },
	}
	return r, nil
}

// watch adds watches for all inputs of the plan. Time-based changes are scheduled by Plan.Next.
func (r *reconciler) watch(mgr manager.Manager, of *caches) error {
	toGarden := func(ctx context.Context, _ client.Object) []reconcile.Request { return r.all(ctx) }
	own := flow.EmittedBy(FlowName)
	_, err := watches.Controller{Name: "garden", Reconciler: r, Workers: 1, RateLimiter: requeue.Backoff()}.AddTo(mgr,
		watches.Self(mgr.GetCache(), &operatorv1alpha1.Garden{}, flow.DeclarationChanged()),
		watches.Mapped(of.runtime, &resourcesv1alpha1.ManagedResource{}, toGarden, predicate.Or(own, ofSeed())),
		watches.Mapped(of.runtime, watches.MetadataOf("Secret"), toGarden, own),
		watches.Mapped(of.material, &corev1.Secret{}, toGarden),
		watches.Mapped(of.others, watches.MetadataOf("Secret"), toGarden),
		watches.Mapped(of.others, watches.MetadataOf("ConfigMap"), toGarden),
		watches.Mapped(of.runtime, &corev1.Service{}, toGarden),
		watches.Mapped(of.runtime, &apiextensionsv1.CustomResourceDefinition{}, toGarden, createdOrDeleted(managedResources)),
		watches.Mapped(of.runtime, watches.MetadataOf("Node"), toGarden, createdOrDeleted("")),
	)
	return err
}

// all returns requests for all Gardens. There is usually one.
func (r *reconciler) all(ctx context.Context) []reconcile.Request {
	var list operatorv1alpha1.GardenList
	if err := r.runtime.List(ctx, &list); err != nil {
		return nil // the cache is not filled yet; each Garden in it is reconciled when it is
	}
	requests := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}

// createdOrDeleted passes creations and deletions, and spec changes of the object with the given name, if any.
func createdOrDeleted(always string) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return always != "" && e.ObjectNew.GetName() == always && e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration()
	}}
}
