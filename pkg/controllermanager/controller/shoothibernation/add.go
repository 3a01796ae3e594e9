package shoothibernation

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

const (
	name         = "shoot-hibernation"
	fieldManager = "gardener-controller-manager"
)

// Options are the options of the controller.
type Options struct {
	// Recorder writes Events about Shoots.
	Recorder events.EventRecorder
	// Syncs is the number of Shoots that are reconciled concurrently.
	Syncs int
	// Deadline is how long after its time a schedule is still executed.
	Deadline time.Duration
}

// AddToManager adds the controller to the manager of the garden. Its cache must contain the state of the last operation of
// Shoots, and the fields that [Keep] copies.
func AddToManager(mgr manager.Manager, options Options) error {
	built, err := controller.New(name, mgr, controller.Options{
		Reconciler:              &reconciler{mgr.GetClient(), options.Recorder, clock.RealClock{}, options.Deadline},
		MaxConcurrentReconciles: max(options.Syncs, 1),
		SkipNameValidation:      mgr.GetControllerOptions().SkipNameValidation, RecoverPanic: ptr.To(true),
	})
	if err != nil {
		return fmt.Errorf("add the controller %s: %w", name, err)
	}
	shoots := source.Kind[client.Object](mgr.GetCache(), &corev1beta1.Shoot{}, &handler.EnqueueRequestForObject{}, changed())
	if err := built.Watch(shoots); err != nil {
		return fmt.Errorf("add a watch of the controller %s: %w", name, err)
	}
	return nil
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
