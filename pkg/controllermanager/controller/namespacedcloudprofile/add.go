package namespacedcloudprofile

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
)

// indexParent finds NamespacedCloudProfiles by their parents.
const indexParent = "spec.parent.name"

// Controller returns the controller of the status of NamespacedCloudProfiles.
func Controller() controller.Controller {
	return controller.Controller{
		Name: "namespacedcloudprofile-status", Add: add,
		Keeps: []controller.Keep{controller.Whole[corev1beta1.CloudProfile](), controller.Whole[corev1beta1.NamespacedCloudProfile]()},
		Indexes: []controller.Index{{Object: &corev1beta1.NamespacedCloudProfile{}, Field: indexParent, Values: func(object client.Object) []string {
			if profile, ok := object.(*corev1beta1.NamespacedCloudProfile); ok {
				return []string{profile.Spec.Parent.Name}
			}
			return nil
		}}},
		Rights: []controller.Right{
			controller.May("profiles to merge", corev1beta1.GroupName, []string{"cloudprofiles", "namespacedcloudprofiles"}, controller.Reads()...),
			controller.May("merged profiles", corev1beta1.GroupName, []string{"namespacedcloudprofiles/status"}, "patch"),
		},
	}
}

func add(_ context.Context, mgr manager.Manager, deps controller.Deps) error {
	r := &reconciler{client: deps.Client, recorder: deps.Recorder}
	return controller.Start(mgr, "namespacedcloudprofile-status", r, deps.Config.NamespacedCloudProfile.ConcurrentSyncs,
		controller.On(&corev1beta1.NamespacedCloudProfile{}, &handler.EnqueueRequestForObject{},
			controller.Changes(func(before, after *corev1beta1.NamespacedCloudProfile) bool {
				return before.Generation != after.Generation
			})),
		controller.On(&corev1beta1.CloudProfile{}, handler.EnqueueRequestsFromMapFunc(r.children),
			controller.Changes(func(before, after *corev1beta1.CloudProfile) bool {
				return !equality.Semantic.DeepEqual(before.Spec, after.Spec)
			})))
}

// children returns requests for the profiles with a parent.
func (r *reconciler) children(ctx context.Context, parent client.Object) []reconcile.Request {
	var list corev1beta1.NamespacedCloudProfileList
	if err := r.client.List(ctx, &list, client.UnsafeDisableDeepCopy, client.MatchingFields{indexParent: parent.GetName()}); err != nil {
		log.FromContext(ctx).Error(err, "Could not list the children of a CloudProfile", "cloudProfile", parent.GetName())
		return nil // the process ends, or the cache has not synced and its watch reports all children once it has
	}
	requests := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}
