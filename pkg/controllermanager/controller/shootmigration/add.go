package shootmigration

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
)

const (
	// name of the controller.
	name = "shoot-migration"
	// indexMoving is the index of Shoots that move, by both Seeds.
	indexMoving = "movingBetweenSeeds"
)

// Controller returns the controller of the constraint ReadyForMigration.
func Controller() controller.Controller {
	return controller.Controller{
		Name: name, Add: add,
		Keeps:   []controller.Keep{controller.Keeping(Keep), controller.Whole[corev1beta1.Seed](), controller.Whole[seedmanagementv1alpha1.ManagedSeed]()},
		Indexes: []controller.Index{{Object: &corev1beta1.Shoot{}, Field: indexMoving, Values: moving}},
		Rights: []controller.Right{
			controller.May("Shoots that move, and their Seeds", corev1beta1.GroupName, []string{"shoots", "seeds"}, controller.Reads()...),
			controller.May("Shoots that are Seeds do not move", seedmanagementv1alpha1.GroupName, []string{"managedseeds"}, controller.Reads()...),
			controller.May("lets control planes move", corev1beta1.GroupName, []string{"shoots/status"}, "patch"),
		},
	}
}

// add adds the controller to the manager of the garden.
func add(_ context.Context, mgr manager.Manager, deps controller.Deps) error {
	r := &reconciler{deps.Client, deps.Clock}
	by := func(key func(client.Object) string) handler.EventHandler {
		return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, object client.Object) []reconcile.Request {
			var shoots corev1beta1.ShootList
			if err := r.client.List(ctx, &shoots, client.UnsafeDisableDeepCopy, client.MatchingFields{indexMoving: key(object)}); err != nil {
				return nil // the cache has not synced, and the watch of Shoots reports all of them once it has
			}
			requests := make([]reconcile.Request, 0, len(shoots.Items))
			for i := range shoots.Items {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&shoots.Items[i])})
			}
			return requests
		})
	}
	ofManaged := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		managed, ok := object.(*seedmanagementv1alpha1.ManagedSeed)
		if !ok || managed.Spec.Shoot == nil {
			return nil
		}
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: managed.Namespace, Name: managed.Spec.Shoot.Name}}}
	})
	return controller.Start(mgr, name, r, deps.Config.ShootMigration.ConcurrentSyncs,
		controller.On(&corev1beta1.Shoot{}, nil, controller.Changes(func(before, after *corev1beta1.Shoot) bool {
			var old, changed corev1beta1.Shoot
			Keep(&old, before)
			Keep(&changed, after)
			return !equality.Semantic.DeepEqual(old, changed)
		})),
		controller.On(&corev1beta1.Seed{}, by(func(object client.Object) string { return object.GetName() }),
			controller.Changes(func(before, after *corev1beta1.Seed) bool {
				return before.Generation != after.Generation || !equality.Semantic.DeepEqual(before.Status, after.Status)
			})),
		controller.On(&seedmanagementv1alpha1.ManagedSeed{}, ofManaged, controller.Changes(func(*seedmanagementv1alpha1.ManagedSeed, *seedmanagementv1alpha1.ManagedSeed) bool {
			return false // which Shoot it names never changes
		})),
	)
}

// moving returns the keys of a Shoot in the index.
func moving(object client.Object) []string {
	shoot, ok := object.(*corev1beta1.Shoot)
	if !ok {
		return nil
	}
	source, destination, is := moves(shoot)
	if !is {
		return nil
	}
	return []string{source, destination}
}

// Keep copies the fields on which decisions depend into a cached Shoot. Another controller keeps the pools and the provider.
func Keep(into, shoot *corev1beta1.Shoot) {
	into.Spec.SeedName, into.Status.SeedName, into.Status.IsHibernated = shoot.Spec.SeedName, shoot.Status.SeedName, shoot.Status.IsHibernated
	if shoot.Spec.Hibernation != nil && into.Spec.Hibernation == nil {
		into.Spec.Hibernation = &corev1beta1.Hibernation{Enabled: shoot.Spec.Hibernation.Enabled}
	}
	if last := shoot.Status.LastOperation; last != nil && into.Status.LastOperation == nil {
		into.Status.LastOperation = &corev1beta1.LastOperation{Type: last.Type, State: last.State}
	} else if last != nil {
		into.Status.LastOperation.Type, into.Status.LastOperation.State = last.Type, last.State
	}
	for _, kind := range []corev1beta1.ConditionType{corev1beta1.ShootReadyForMigration, corev1beta1.ShootBackupReady} {
		if constraint := corev1beta1.FindCondition(shoot.Status.Constraints, kind); constraint != nil {
			into.Status.Constraints = corev1beta1.SetCondition(into.Status.Constraints, *constraint)
		}
	}
}
