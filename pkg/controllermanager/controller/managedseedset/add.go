package managedseedset

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
)

// Controller returns the controller of ManagedSeedSets.
func Controller() controller.Controller {
	return controller.Controller{
		Name: "managedseedset", Add: add,
		Keeps: []controller.Keep{
			controller.Keeping(keep), controller.Whole[v1alpha1.ManagedSeedSet](), controller.Whole[v1alpha1.ManagedSeed](), controller.Whole[gardencorev1beta1.Seed](),
		},
		Rights: []controller.Right{
			controller.May("sets", v1alpha1.GroupName, []string{"managedseedsets"}, "get", "list", "watch", "patch"),
			controller.May("the status of sets", v1alpha1.GroupName, []string{"managedseedsets/status"}, "patch"),
			controller.May("replicas of sets", v1alpha1.GroupName, []string{"managedseeds"}, "create", "get", "list", "watch", "delete"),
			controller.May("replicas of sets", gardencorev1beta1.GroupName, []string{"shoots"}, "create", "get", "list", "watch", "patch", "delete"),
			controller.May("Seeds of replicas of sets", gardencorev1beta1.GroupName, []string{"seeds"}, controller.Reads()...),
		},
	}
}

func add(_ context.Context, mgr manager.Manager, deps controller.Deps) error {
	settings := deps.Config.ManagedSeedSet
	r := &reconciler{Protector: deps.Protector(), clock: deps.Clock, maxRetries: *settings.MaxShootRetries, period: settings.SyncPeriod.Duration}
	return controller.Start(mgr, "managedseedset", r, settings.ConcurrentSyncs,
		controller.On(&v1alpha1.ManagedSeedSet{}, &handler.EnqueueRequestForObject{},
			controller.Changes(func(before, after *v1alpha1.ManagedSeedSet) bool { return before.Generation != after.Generation })),
		controller.On(&gardencorev1beta1.Shoot{}, handler.EnqueueRequestsFromMapFunc(r.ofShoot), controller.Changes(shootsDiffer)),
		controller.On(&v1alpha1.ManagedSeed{}, handler.EnqueueRequestsFromMapFunc(owner), controller.Changes(func(before, after *v1alpha1.ManagedSeed) bool {
			return stateOf(&gardencorev1beta1.Shoot{}, before) != stateOf(&gardencorev1beta1.Shoot{}, after) || protected(before) != protected(after)
		})),
		controller.On(&gardencorev1beta1.Seed{}, handler.EnqueueRequestsFromMapFunc(r.ofSeed), controller.Changes(func(before, after *gardencorev1beta1.Seed) bool {
			return isReady(before) != isReady(after)
		})))
}

// keep keeps the fields of Shoots on which decisions depend. Only Shoots in namespace garden can be replicas; of others, their Seeds count.
func keep(kept, shoot *gardencorev1beta1.Shoot) {
	kept.Spec.SeedName, kept.Status.SeedName = shoot.Spec.SeedName, shoot.Status.SeedName
	if shoot.Namespace != constants.GardenNamespace {
		return
	}
	kept.Labels, kept.OwnerReferences, kept.Generation = shoot.Labels, shoot.OwnerReferences, shoot.Generation
	if value, set := shoot.Annotations[constants.AnnotationProtectFromDeletion]; set {
		metav1.SetMetaDataAnnotation(&kept.ObjectMeta, constants.AnnotationProtectFromDeletion, value)
	}
	kept.Status.ObservedGeneration = shoot.Status.ObservedGeneration
	if last := shoot.Status.LastOperation; last != nil {
		if kept.Status.LastOperation == nil {
			kept.Status.LastOperation = &gardencorev1beta1.LastOperation{}
		}
		kept.Status.LastOperation.Type, kept.Status.LastOperation.State = last.Type, last.State
	}
}

// shootsDiffer reports changes of the state of a replica, and of the Seeds of a Shoot.
func shootsDiffer(before, after *gardencorev1beta1.Shoot) bool {
	return !ptr.Equal(before.Spec.SeedName, after.Spec.SeedName) || !ptr.Equal(before.Status.SeedName, after.Status.SeedName) ||
		stateOf(before, nil) != stateOf(after, nil) || healthOf(before) != healthOf(after) || protected(before) != protected(after) ||
		!equality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences)
}

func protected(object client.Object) bool {
	return object.GetAnnotations()[constants.AnnotationProtectFromDeletion] == "true"
}

// owner returns a request for the set that owns an object.
func owner(_ context.Context, object client.Object) []reconcile.Request {
	if of := metav1.GetControllerOf(object); of != nil && of.Kind == "ManagedSeedSet" {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: of.Name}}}
	}
	return nil
}

// ofShoot returns requests for the set of a Shoot, and for those on whose Seeds it is.
func (r *reconciler) ofShoot(ctx context.Context, object client.Object) []reconcile.Request {
	requests := owner(ctx, object)
	if shoot, ok := object.(*gardencorev1beta1.Shoot); ok {
		for _, seed := range []*string{shoot.Spec.SeedName, shoot.Status.SeedName} {
			requests = append(requests, r.ofSeedName(ctx, ptr.Deref(seed, ""))...)
		}
	}
	return requests
}

func (r *reconciler) ofSeed(ctx context.Context, object client.Object) []reconcile.Request {
	return r.ofSeedName(ctx, object.GetName())
}

// ofSeedName returns a request for the set of the ManagedSeed with the name of a Seed, if there is one.
func (r *reconciler) ofSeedName(ctx context.Context, name string) []reconcile.Request {
	managed := &v1alpha1.ManagedSeed{}
	if name == "" || r.Client.Get(ctx, client.ObjectKey{Namespace: constants.GardenNamespace, Name: name}, managed) != nil {
		return nil // it is the Seed of no set; while the cache has not synced, its watch reports all sets later
	}
	return owner(ctx, managed)
}
