package shootconditions

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	seedmanagementv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
)

// Controller returns the controller of conditions of Shoots that are Seeds.
func Controller() controller.Controller {
	return controller.Controller{
		Name: "shoot-conditions", Add: add,
		Keeps: []controller.Keep{
			controller.Keeping(keep), controller.Whole[corev1beta1.Seed](), controller.Whole[seedmanagementv1alpha1.ManagedSeed](),
		},
		Rights: []controller.Right{
			controller.May("conditions of Seeds", corev1beta1.GroupName, []string{"seeds", "shoots"}, controller.Reads()...),
			controller.May("Shoots that are Seeds", seedmanagementv1alpha1.GroupName, []string{"managedseeds"}, controller.Reads()...),
			controller.May("shows conditions of Seeds in their Shoots", corev1beta1.GroupName, []string{"shoots/status"}, "patch"),
		},
	}
}

func add(_ context.Context, mgr manager.Manager, deps controller.Deps) error {
	r := &reconciler{deps.Client}
	// Only Shoots in namespace garden can be Seeds.
	inGarden := predicate.NewPredicateFuncs(func(object client.Object) bool { return object.GetNamespace() == constants.GardenNamespace })
	return controller.Start(mgr, "shoot-conditions", r, deps.Config.ShootConditions.ConcurrentSyncs,
		controller.Watch{Object: &corev1beta1.Shoot{}, Changed: predicate.And(inGarden, controller.Changes(func(before, after *corev1beta1.Shoot) bool {
			return !equality.Semantic.DeepEqual(before.Status.Conditions, after.Status.Conditions)
		}))},
		controller.On(&seedmanagementv1alpha1.ManagedSeed{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
			return shootOf(object)
		}), controller.Changes(func(*seedmanagementv1alpha1.ManagedSeed, *seedmanagementv1alpha1.ManagedSeed) bool { return false })),
		controller.On(&corev1beta1.Seed{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, object client.Object) []reconcile.Request {
			managed := &seedmanagementv1alpha1.ManagedSeed{}
			if err := r.client.Get(ctx, client.ObjectKey{Namespace: constants.GardenNamespace, Name: object.GetName()}, managed); err != nil {
				return nil // the Seed is not a Shoot, or the watch of ManagedSeeds reports it later
			}
			return shootOf(managed)
		}), controller.Changes(func(before, after *corev1beta1.Seed) bool {
			return !equality.Semantic.DeepEqual(before.Status.Conditions, after.Status.Conditions)
		})),
	)
}

// shootOf returns a request for the Shoot of a ManagedSeed.
func shootOf(object client.Object) []reconcile.Request {
	managed, ok := object.(*seedmanagementv1alpha1.ManagedSeed)
	if !ok || managed.Spec.Shoot == nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: managed.Namespace, Name: managed.Spec.Shoot.Name}}}
}

// keep keeps all conditions of Shoots that can be Seeds.
func keep(kept, shoot *corev1beta1.Shoot) {
	if shoot.Namespace == constants.GardenNamespace {
		kept.Status.Conditions = shoot.Status.Conditions
	}
}
