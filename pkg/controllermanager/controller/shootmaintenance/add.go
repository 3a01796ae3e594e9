package shootmaintenance

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
)

// Controller returns the controller that maintains Shoots.
func Controller() controller.Controller {
	return controller.Controller{
		Name: "shoot-maintenance",
		Add: func(_ context.Context, mgr manager.Manager, deps controller.Deps) error {
			settings := deps.Config.ShootMaintenance
			r := &reconciler{deps.Client, deps.Live, deps.Recorder, deps.Clock, controller.NewClockCheck(mgr), settings}
			return controller.Start(mgr, "shoot-maintenance", r, settings.ConcurrentSyncs,
				controller.Watch{Object: &corev1beta1.Shoot{}, Changed: controller.Changes(func(before, after *corev1beta1.Shoot) bool {
					return isRequested(after) && !isRequested(before) || !equality.Semantic.DeepEqual(windowOf(before), windowOf(after))
				})})
		},
		Keeps: []controller.Keep{
			controller.Keeping(Keep), controller.Whole[corev1beta1.CloudProfile](), controller.Whole[corev1beta1.NamespacedCloudProfile](),
		},
		Rights: []controller.Right{
			controller.May("maintains Shoots", corev1beta1.GroupName, []string{"shoots"}, "get", "list", "watch", "patch"),
			controller.May("records the maintenance of Shoots", corev1beta1.GroupName, []string{"shoots/status"}, "patch"),
			controller.May("versions of Shoots", corev1beta1.GroupName, []string{"cloudprofiles", "namespacedcloudprofiles"}, controller.Reads()...),
			controller.May("SecretBindings that later versions of Kubernetes forbid", corev1beta1.GroupName, []string{"secretbindings"}, "get"),
			controller.May("replaces SecretBindings that later versions of Kubernetes forbid", securityv1alpha1.GroupName, []string{"credentialsbindings"}, "list", "create"),
		},
	}
}

func windowOf(shoot *corev1beta1.Shoot) *corev1beta1.MaintenanceTimeWindow {
	if shoot.Spec.Maintenance == nil {
		return nil
	}
	return shoot.Spec.Maintenance.TimeWindow
}
