package cloudprofilestatus

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
	"github.com/trellis-k8s/trellis/pkg/requeue"
)

// Controller returns the controller of the status of CloudProfiles.
func Controller() controller.Controller {
	return controller.Controller{
		Name: "cloudprofile-status",
		Add: func(_ context.Context, mgr manager.Manager, deps controller.Deps) error {
			r := &reconciler{client: deps.Client, clock: deps.Clock}
			return controller.Start(mgr, "cloudprofile-status", r, deps.Config.CloudProfile.ConcurrentSyncs,
				controller.On(&corev1beta1.CloudProfile{}, &handler.EnqueueRequestForObject{}, controller.Changes(func(before, after *corev1beta1.CloudProfile) bool {
					return !equality.Semantic.DeepEqual(before.Spec, after.Spec) || !equality.Semantic.DeepEqual(before.Status, after.Status)
				})))
		},
		Keeps: []controller.Keep{controller.Whole[corev1beta1.CloudProfile]()},
		Rights: []controller.Right{
			controller.May("versions of CloudProfiles", corev1beta1.GroupName, []string{"cloudprofiles"}, controller.Reads()...),
			controller.May("classifications of versions", corev1beta1.GroupName, []string{"cloudprofiles/status"}, "patch"),
		},
	}
}

// reconciler writes the status of CloudProfiles.
type reconciler struct {
	client client.Client
	clock  clock.PassiveClock
}

// Reconcile writes the status of a CloudProfile if it has changed, and comes back when it changes next.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	profile := &corev1beta1.CloudProfile{}
	if err := r.client.Get(ctx, request.NamespacedName, profile); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	before, now := profile.DeepCopy(), r.clock.Now()
	status, next := Decide(&profile.Spec, now)
	if !equality.Semantic.DeepEqual(profile.Status, status) {
		profile.Status = status
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		if err := client.IgnoreNotFound(r.client.Status().Patch(ctx, profile, patch, controller.FieldManager)); err != nil {
			return reconcile.Result{}, fmt.Errorf("write the status of CloudProfile %s: %w", request.Name, err)
		}
	}
	return requeue.At(next, now), nil
}
