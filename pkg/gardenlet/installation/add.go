package installation

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cachetransform"
	"github.com/trellis-k8s/trellis/pkg/crdwatch"
	"github.com/trellis-k8s/trellis/pkg/existingtypes"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/gardenobjects"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/seedfacts"
	"github.com/trellis-k8s/trellis/pkg/helmchart/registry"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

const (
	// startTimeout limits how long AddToManager reads from the seed.
	startTimeout = 30 * time.Second
	// firstRetry and lastRetry are the shortest and longest delay of retries. The limit ensures that a registry is used soon after an outage.
	firstRetry = 5 * time.Millisecond
	lastRetry  = 5 * time.Minute
)

// Seed contains the clients of the seed in addition to the manager's client.
type Seed struct {
	Dynamic  dynamic.Interface
	Metadata metadata.Interface
	Kinds    crdwatch.Kinds
}

// AddToManager adds the controller to the manager of the seed. The garden's cache contains the Seed, the ControllerRegistrations, and the
// ControllerInstallations that refer to the Seed.
func AddToManager(mgr manager.Manager, garden cluster.Cluster, seed Seed, o Options) error {
	emitted, indexed, err := newCache(mgr, o.Namespace)
	if err != nil {
		return err
	}
	wake := watches.NewNotifier(1)
	r := &reconciler{
		Options: o, seed: mgr.GetClient(), uncached: mgr.GetAPIReader(), emitted: indexed,
		garden: garden.GetClient(), objects: gardenobjects.New(garden),
		registries: registry.New(), extensions: existingtypes.New(existingtypes.Options{
			Dynamic: seed.Dynamic, Metadata: seed.Metadata, Served: seed.Kinds, Changed: wake.Wake,
			Counts:   func(class string) bool { return class != string(extensionsv1alpha1.ExtensionClassGarden) },
			Affected: "the condition Required of ControllerInstallations",
		}),
	}
	r.emitter = &flow.Emitter{
		Reader: indexed, Uncached: r.uncached, Writer: r.seed, FieldManager: fieldManager, Clock: o.Clock,
		Rules: flow.Rules{Scheme: mgr.GetScheme(), Protected: flow.DefaultProtected(), Version: o.Version},
	}
	r.objects.OnChange(wake.Notify)
	if r.Facts == nil {
		r.Facts = seedfacts.New(mgr.GetConfig(), mgr.GetHTTPClient(), r.uncached, o.Clock)
	}
	r.Facts.OnChange(wake.Wake)
	for _, runnable := range []manager.Runnable{emitted, r.objects} {
		if err := mgr.Add(runnable); err != nil {
			return fmt.Errorf("add a cache of the controller of extensions: %w", err)
		}
	}
	if err := r.extensions.AddToManager(mgr); err != nil {
		return fmt.Errorf("add the watches of extension objects: %w", err)
	}
	return r.watch(mgr, garden, emitted, wake)
}

// newCache returns a cache of emitted objects, and the same cache with an index by owner.
func newCache(mgr manager.Manager, namespace string) (cache.Cache, flow.IndexedReader, error) {
	c, err := watches.NewCache(mgr, "the seed", cache.Options{
		ByObject: map[client.Object]cache.ByObject{
			// This includes ManagedResources of others, which remain unchanged.
			&resourcesv1alpha1.ManagedResource{}: {
				Namespaces: map[string]cache.Config{namespace: {}}, Transform: cachetransform.NewCompactor().Compact,
			},
			&corev1.Secret{}: {Namespaces: map[string]cache.Config{
				namespace: {LabelSelector: labels.SelectorFromSet(labels.Set{flow.LabelFlow: FlowName})},
			}},
		},
	})
	if err != nil {
		return nil, flow.IndexedReader{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	indexed, err := flow.IndexOwners(ctx, c)
	return c, indexed, err
}

// watch adds the controller with watches of all objects that it reads.
func (r *reconciler) watch(mgr manager.Manager, garden cluster.Cluster, emitted cache.Cache, wake watches.Notifier) error {
	toAll := func(ctx context.Context, _ client.Object) []reconcile.Request {
		return r.all(ctx, func(*corev1beta1.ControllerInstallation) bool { return true })
	}
	toThose := func(ctx context.Context, registration client.Object) []reconcile.Request {
		return r.all(ctx, func(i *corev1beta1.ControllerInstallation) bool {
			return i.Spec.RegistrationRef.Name == registration.GetName()
		})
	}
	own := flow.EmittedBy(FlowName)
	delays := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry)
	_, err := watches.Controller{Name: "controllerinstallation", Reconciler: r, Workers: r.ConcurrentSyncs, RateLimiter: delays}.AddTo(mgr,
		watches.Self(garden.GetCache(), &corev1beta1.ControllerInstallation{}, installationChanged()),
		watches.Mapped(garden.GetCache(), &corev1beta1.ControllerRegistration{}, toThose, predicate.GenerationChangedPredicate{}),
		watches.Mapped(garden.GetCache(), &corev1beta1.Seed{}, toAll, seedChanged(r.SeedName)),
		watches.Kind(emitted, &resourcesv1alpha1.ManagedResource{}, flow.ToOwner(), own),
		watches.Kind(emitted, watches.MetadataOf("Secret"), flow.ToOwner(), own),
		wake.Source(toAll),
	)
	return err
}

// installationChanged passes all changes except those of the status, which the controller writes itself.
func installationChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*corev1beta1.ControllerInstallation)
		after, same := e.ObjectNew.(*corev1beta1.ControllerInstallation)
		return !ok || !same || !equality.Semantic.DeepEqual(before.Spec, after.Spec) ||
			!equality.Semantic.DeepEqual(before.Annotations, after.Annotations) ||
			!equality.Semantic.DeepEqual(before.Finalizers, after.Finalizers) ||
			(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil)
	}}
}

// seedChanged passes changes of the Seed that are part of the values of charts.
func seedChanged(name string) predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return e.Object.GetName() == name },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*corev1beta1.Seed)
			after, same := e.ObjectNew.(*corev1beta1.Seed)
			return !ok || !same || after.Name == name && (before.Generation != after.Generation ||
				!equality.Semantic.DeepEqual(before.Labels, after.Labels) ||
				!equality.Semantic.DeepEqual(ownAnnotations(before), ownAnnotations(after)) ||
				!equality.Semantic.DeepEqual(before.Status.KubernetesVersion, after.Status.KubernetesVersion) ||
				!equality.Semantic.DeepEqual(before.Status.ClusterIdentity, after.Status.ClusterIdentity))
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}
