package controllerregistration

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/controllers/references"
)

// Options are the options of the controllers.
type Options struct {
	// Recorder writes Events.
	Recorder events.EventRecorder
	// RegistrationSyncs, DeploymentSyncs and ReadySyncs are the numbers of objects that are reconciled concurrently.
	RegistrationSyncs, DeploymentSyncs, ReadySyncs int
	// ReadyThreshold is how long failing extensions are reported as Progressing in the condition of their Seed before it
	// becomes False. 0 disables this.
	ReadyThreshold time.Duration
}

// AddToManager adds the controllers to the manager of the garden, whose cache must have CacheOptions. Call it before the manager starts.
func AddToManager(ctx context.Context, mgr manager.Manager, o Options) error {
	if err := addIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	c := controllers{cached: mgr.GetClient(), uncached: mgr.GetAPIReader(), recorder: o.Recorder}
	return errors.Join(c.addSeeds(mgr, o.RegistrationSyncs), c.addRegistrations(mgr, o.RegistrationSyncs),
		c.addDeployments(mgr, o.DeploymentSyncs), c.addReferences(mgr, o.DeploymentSyncs), c.addReady(mgr, o.ReadySyncs, o.ReadyThreshold))
}

// controllers contains the clients of all controllers.
type controllers struct {
	// cached reads from the cache of the garden and writes to its API server. uncached reads from the API server.
	cached   client.Client
	uncached client.Reader
	recorder events.EventRecorder
}

// watch is a watch of one kind, with its handler and filter.
type watch struct {
	object  client.Object
	handler handler.EventHandler
	changed predicate.Predicate
}

// add adds a controller with its watches.
func add(mgr manager.Manager, name string, reconciler reconcile.Reconciler, syncs int, watches ...watch) error {
	built, err := controller.New(name, mgr, controller.Options{
		Reconciler: reconciler, MaxConcurrentReconciles: max(syncs, 1),
		SkipNameValidation: mgr.GetControllerOptions().SkipNameValidation, RecoverPanic: ptr.To(true),
	})
	if err != nil {
		return fmt.Errorf("add the controller %s: %w", name, err)
	}
	for _, w := range watches {
		if err := built.Watch(source.Kind(mgr.GetCache(), w.object, w.handler, w.changed)); err != nil {
			return fmt.Errorf("add a watch of the controller %s: %w", name, err)
		}
	}
	return nil
}

// addSeeds adds the controller of the installations in each Seed. It watches everything that the decision depends on.
func (c controllers) addSeeds(mgr manager.Manager, syncs int) error {
	toSeeds := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		return requests(seedsOf(object)...)
	})
	toAll := handler.EnqueueRequestsFromMapFunc(c.allSeeds)
	generation := predicate.GenerationChangedPredicate{}
	return add(mgr, "controllerregistration-seed", &seedReconciler{controllers: c}, syncs,
		watch{&corev1beta1.Seed{}, &handler.EnqueueRequestForObject{}, changes(func(before, after *corev1beta1.Seed) bool {
			return before.Generation != after.Generation || !equality.Semantic.DeepEqual(before.Labels, after.Labels)
		})},
		watch{&corev1beta1.ControllerRegistration{}, toAll, changes(func(before, after *corev1beta1.ControllerRegistration) bool {
			return before.Generation != after.Generation || !equality.Semantic.DeepEqual(before.Annotations, after.Annotations)
		})},
		watch{&gardencorev1.ControllerDeployment{}, toAll, changes(func(before, after *gardencorev1.ControllerDeployment) bool {
			return !equality.Semantic.DeepEqual([]any{before.Helm, before.Resources, before.InjectGardenKubeconfig, before.Annotations},
				[]any{after.Helm, after.Resources, after.InjectGardenKubeconfig, after.Annotations})
		})},
		watch{&corev1beta1.ControllerInstallation{}, toSeeds, changes(func(before, after *corev1beta1.ControllerInstallation) bool {
			return !equality.Semantic.DeepEqual(before.Spec, after.Spec) || !equality.Semantic.DeepEqual(before.Labels, after.Labels) ||
				!equality.Semantic.DeepEqual(before.Finalizers, after.Finalizers) || required(before) != required(after)
		})},
		watch{&corev1beta1.BackupBucket{}, toAll, generation},
		watch{&corev1beta1.BackupEntry{}, toSeeds, changes(func(before, after *corev1beta1.BackupEntry) bool {
			return before.Generation != after.Generation || !equality.Semantic.DeepEqual(before.Status.SeedName, after.Status.SeedName)
		})},
		watch{&corev1beta1.Shoot{}, toSeeds, changes(func(before, after *corev1beta1.Shoot) bool {
			return !equality.Semantic.DeepEqual(before.Spec, after.Spec) || !equality.Semantic.DeepEqual(
				before.Status.SeedName, after.Status.SeedName,
			)
		})},
		watch{metadataOf(references.Secret), toAll, predicate.ResourceVersionChangedPredicate{}},
		watch{metadataOf(references.ConfigMap), toAll, predicate.ResourceVersionChangedPredicate{}},
	)
}

// required returns the status of the condition Required.
func required(installation *corev1beta1.ControllerInstallation) corev1beta1.ConditionStatus {
	for _, condition := range installation.Status.Conditions {
		if condition.Type == corev1beta1.ControllerInstallationRequired {
			return condition.Status
		}
	}
	return ""
}

// changes passes updates that change the compared fields, or that start a deletion.
func changes[T client.Object](differ func(before, after T) bool) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(T)
		after, same := e.ObjectNew.(T)
		return !ok || !same || (before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil) ||
			before.GetUID() != after.GetUID() || differ(before, after)
	}}
}

// allSeeds returns a request for each Seed.
func (c controllers) allSeeds(ctx context.Context, _ client.Object) []reconcile.Request {
	var seeds corev1beta1.SeedList
	if err := c.cached.List(ctx, &seeds, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the process ends, or the cache has not synced and its watch reports all Seeds once it has
	}
	names := make([]string, 0, len(seeds.Items))
	for i := range seeds.Items {
		names = append(names, seeds.Items[i].Name)
	}
	return requests(names...)
}

// requests returns requests for cluster-scoped objects.
func requests(names ...string) []reconcile.Request {
	all := make([]reconcile.Request, 0, len(names))
	for _, name := range names {
		all = append(all, reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
	}
	return all
}
