package shootquota

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
)

// Controller returns the controller of the lifetime of Shoots.
func Controller() controller.Controller {
	return controller.Controller{
		Name: "shoot-quota",
		Add: func(_ context.Context, mgr manager.Manager, deps controller.Deps) error {
			settings := deps.Config.ShootQuota
			r := &reconciler{deps.Client, deps.Live, deps.Recorder, deps.Clock, controller.NewClockCheck(mgr), settings.SyncPeriod.Duration}
			return controller.Start(mgr, "shoot-quota", r, settings.ConcurrentSyncs,
				controller.Watch{Object: &corev1beta1.Shoot{}, Changed: controller.Changes(differ)},
				controller.On(&corev1beta1.Quota{}, handler.EnqueueRequestsFromMapFunc(r.allShoots),
					controller.Changes(func(before, after *corev1beta1.Quota) bool {
						return !equality.Semantic.DeepEqual(before.Spec.ClusterLifetimeDays, after.Spec.ClusterLifetimeDays)
					})),
			)
		},
		Keeps: []controller.Keep{controller.Keeping(Keep)},
		Rights: []controller.Right{
			controller.May("deletes Shoots whose lifetime has passed", corev1beta1.GroupName, []string{"shoots"}, "get", "list", "watch", "patch", "delete"),
			controller.May("lifetimes of Shoots", corev1beta1.GroupName, []string{"quotas", "secretbindings"}, controller.Reads()...),
			controller.May("Quotas of Shoots", securityv1alpha1.GroupName, []string{"credentialsbindings"}, controller.Reads()...),
		},
	}
}

// differ reports whether the end of a Shoot may have changed.
func differ(before, after *corev1beta1.Shoot) bool {
	return before.Annotations[constants.AnnotationShootExpirationTimestamp] != after.Annotations[constants.AnnotationShootExpirationTimestamp] ||
		before.Annotations[constants.AnnotationConfirmationDeletion] != after.Annotations[constants.AnnotationConfirmationDeletion] ||
		!equality.Semantic.DeepEqual(before.Spec.SecretBindingName, after.Spec.SecretBindingName) ||
		!equality.Semantic.DeepEqual(before.Spec.CredentialsBindingName, after.Spec.CredentialsBindingName)
}

// allShoots returns a request for each Shoot. Quotas change rarely.
func (r *reconciler) allShoots(ctx context.Context, _ client.Object) []reconcile.Request {
	var shoots corev1beta1.ShootList
	if err := r.client.List(ctx, &shoots, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the process ends, or the cache has not synced and its watch reports all Shoots once it has
	}
	requests := make([]reconcile.Request, 0, len(shoots.Items))
	for i := range shoots.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&shoots.Items[i])})
	}
	return requests
}
