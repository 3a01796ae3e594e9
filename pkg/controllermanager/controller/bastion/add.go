package bastion

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operations/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
)

// indexShoot indexes Bastions by the names of their Shoots. The API server supports it as a field selector.
const indexShoot = "spec.shootRef.name"

// Controller returns the controller that deletes Bastions.
func Controller() controller.Controller {
	return controller.Controller{
		Name: "bastion",
		Add: func(_ context.Context, mgr manager.Manager, deps controller.Deps) error {
			settings := deps.Config.Bastion
			r := &reconciler{deps.Client, deps.Live, deps.Clock, controller.NewClockCheck(mgr), settings.MaxLifetime.Duration}
			return controller.Start(mgr, "bastion", r, settings.ConcurrentSyncs,
				controller.Watch{Object: &operationsv1alpha1.Bastion{}, Changed: controller.Changes(func(before, after *operationsv1alpha1.Bastion) bool {
					return before.Generation != after.Generation ||
						!equality.Semantic.DeepEqual(before.Status.ExpirationTimestamp, after.Status.ExpirationTimestamp)
				})},
				controller.On(&corev1beta1.Shoot{}, handler.EnqueueRequestsFromMapFunc(r.ofShoot),
					controller.Changes(func(before, after *corev1beta1.Shoot) bool { return moved(before.Spec.SeedName, after.Spec.SeedName) })),
			)
		},
		Keeps:   []controller.Keep{controller.Keeping(Keep)},
		Indexes: []controller.Index{{Object: &operationsv1alpha1.Bastion{}, Field: indexShoot, Values: shootOf}},
		Rights: []controller.Right{
			controller.May("deletes Bastions", operationsv1alpha1.GroupName, []string{"bastions"}, "get", "list", "watch", "delete"),
			controller.May("Shoots of Bastions", corev1beta1.GroupName, []string{"shoots"}, controller.Reads()...),
		},
	}
}

func shootOf(object client.Object) []string {
	if bastion, ok := object.(*operationsv1alpha1.Bastion); ok {
		return []string{bastion.Spec.ShootRef.Name}
	}
	return nil
}

// ofShoot returns requests for the Bastions of a Shoot.
func (r *reconciler) ofShoot(ctx context.Context, shoot client.Object) []reconcile.Request {
	var bastions operationsv1alpha1.BastionList
	err := r.client.List(ctx, &bastions, client.InNamespace(shoot.GetNamespace()), client.MatchingFields{indexShoot: shoot.GetName()})
	if err != nil {
		return nil // the process ends, or the cache has not synced and its watch reports all Bastions once it has
	}
	requests := make([]reconcile.Request, 0, len(bastions.Items))
	for i := range bastions.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&bastions.Items[i])})
	}
	return requests
}
