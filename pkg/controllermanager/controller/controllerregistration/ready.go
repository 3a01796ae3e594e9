package controllerregistration

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
	"github.com/trellis-k8s/trellis/pkg/installation"
	"github.com/trellis-k8s/trellis/pkg/requeue"
)

// readyReconciler maintains the condition ExtensionsReady of Seeds, which summarizes the conditions of their installations.
type readyReconciler struct {
	controllers

	// threshold is how long a failure is reported as Progressing.
	threshold time.Duration
	clock     clock.PassiveClock
}

// addReady adds the controller. It watches Seeds, because gardenlets request a new check of the condition after each operation.
func (c controllers) addReady(mgr manager.Manager, syncs *int, threshold time.Duration, passive clock.PassiveClock) error {
	toSeeds := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		return controller.Requests(seedsOf(object)...)
	})
	return controller.Start(mgr, "seed-extensions-check", &readyReconciler{controllers: c, threshold: threshold, clock: passive}, syncs,
		controller.On(&corev1beta1.Seed{}, &handler.EnqueueRequestForObject{}, controller.Changes(func(before, after *corev1beta1.Seed) bool {
			return !equality.Semantic.DeepEqual(readyOf(before), readyOf(after))
		})),
		controller.On(&corev1beta1.ControllerInstallation{}, toSeeds, controller.Changes(func(before, after *corev1beta1.ControllerInstallation) bool {
			return !equality.Semantic.DeepEqual(before.Status.Conditions, after.Status.Conditions) ||
				!equality.Semantic.DeepEqual(before.Spec.SeedRef, after.Spec.SeedRef)
		})),
	)
}

// readyOf returns the condition of a Seed, or nil if it has none.
func readyOf(seed *corev1beta1.Seed) *corev1beta1.Condition {
	return corev1beta1.FindCondition(seed.Status.Conditions, corev1beta1.SeedExtensionsReady)
}

// Reconcile writes the condition of a Seed if it has changed.
func (r *readyReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	seed := &corev1beta1.Seed{}
	if err := r.cached.Get(ctx, request.NamespacedName, seed); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	var list corev1beta1.ControllerInstallationList
	if err := r.cached.List(ctx, &list, client.UnsafeDisableDeepCopy, client.MatchingFields{indexInstallationSeed: seed.Name}); err != nil {
		return reconcile.Result{}, fmt.Errorf("list the ControllerInstallations in Seed %s: %w", seed.Name, err)
	}
	now, before := r.clock.Now(), readyOf(seed)
	condition, next := installation.Ready(pointers(list.Items), before, r.threshold, now)
	if before == nil || !equality.Semantic.DeepEqual(*before, condition) {
		if err := controller.WriteSeedCondition(ctx, r.cached, seed.Name, condition); err != nil {
			return reconcile.Result{}, err
		}
	}
	return requeue.At(next, now), nil
}
