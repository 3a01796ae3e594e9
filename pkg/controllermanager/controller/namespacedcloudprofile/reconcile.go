package namespacedcloudprofile

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
)

// Reasons of Events.
//
// +events:on=NamespacedCloudProfile
const (
	eventNoParent = "ParentNotFound" // Warning: the CloudProfile of spec.parent does not exist, so the status remains as it is
)

// action is the action of these Events.
const action = "Merge"

// reconciler computes the status of NamespacedCloudProfiles.
type reconciler struct {
	client   client.Client
	recorder events.EventRecorder
}

// Reconcile writes the status of a profile if it has changed. The watches report changes of the parent.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	profile, parent := &corev1beta1.NamespacedCloudProfile{}, &corev1beta1.CloudProfile{}
	if err := r.client.Get(ctx, request.NamespacedName, profile); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	err := r.client.Get(ctx, client.ObjectKey{Name: profile.Spec.Parent.Name}, parent)
	if apierrors.IsNotFound(err) {
		r.recorder.Eventf(profile, nil, corev1.EventTypeWarning, eventNoParent, action, "The CloudProfile %q of spec.parent does not exist", profile.Spec.Parent.Name)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("read the parent of NamespacedCloudProfile %s: %w", request, err)
	}
	before := profile.DeepCopy()
	wanted, differs := Decide(profile, parent)
	if !differs {
		return reconcile.Result{}, nil
	}
	profile.Status = wanted
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := client.IgnoreNotFound(r.client.Status().Patch(ctx, profile, patch, controller.FieldManager)); err != nil {
		return reconcile.Result{}, fmt.Errorf("write the status of NamespacedCloudProfile %s: %w", request, err)
	}
	return reconcile.Result{}, nil
}
