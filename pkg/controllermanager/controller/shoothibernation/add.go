package shoothibernation

import (
	"context"

	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// Controller returns the controller that executes hibernation schedules.
func Controller() controller.Controller {
	return controller.Controller{
		Name: "shoot-hibernation",
		Add: func(_ context.Context, mgr manager.Manager, deps controller.Deps) error {
			settings := deps.Config.ShootHibernation
			r := &reconciler{deps.Client, deps.Recorder, deps.Clock, settings.TriggerDeadlineDuration.Duration}
			return controller.Start(mgr, "shoot-hibernation", r, settings.ConcurrentSyncs,
				controller.Watch{Object: &corev1beta1.Shoot{}, Changed: changed()})
		},
		Keeps: []controller.Keep{controller.Keeping(Keep)},
		Rights: []controller.Right{
			controller.May("hibernates Shoots at the times of their schedules", corev1beta1.GroupName, []string{"shoots"}, "get", "list", "watch", "patch"),
			controller.May("records up to when hibernation schedules are executed", corev1beta1.GroupName, []string{"shoots/status"}, "patch"),
		},
	}
}

// changed passes Shoots with schedules, and changes that affect when these are executed.
func changed() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return hasSchedules(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, was := e.ObjectOld.(*corev1beta1.Shoot)
			after, is := e.ObjectNew.(*corev1beta1.Shoot)
			return !was || !is || hasSchedules(after) && (before.UID != after.UID || isIgnored(before) != isIgnored(after) ||
				!equality.Semantic.DeepEqual(before.Spec.Hibernation, after.Spec.Hibernation))
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

func hasSchedules(object client.Object) bool {
	shoot, ok := object.(*corev1beta1.Shoot)
	return ok && shoot.Spec.Hibernation != nil && len(shoot.Spec.Hibernation.Schedules) > 0
}
