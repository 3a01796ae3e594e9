package seedlifecycle

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	seedmanagementv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
)

// name of the controller.
const name = "gardenlet-lifecycle"

// Controller returns the controller of silent gardenlets.
func Controller() controller.Controller {
	ofSeeds := cache.ByObject{Namespaces: map[string]cache.Config{constants.SystemSeedLeaseNamespace: {}}}
	return controller.Controller{
		Name: name, Add: add,
		Keeps:   []controller.Keep{controller.Keeping(keep)},
		Selects: []controller.Select{{Object: &coordinationv1.Lease{}, Options: ofSeeds}},
		Rights: []controller.Right{
			controller.May("Leases of gardenlets", coordinationv1.GroupName, []string{"leases"}, controller.Reads()...),
			controller.May("Seeds and Shoots of silent gardenlets", corev1beta1.GroupName, []string{"seeds", "shoots"}, controller.Reads()...),
			controller.May("conditions of silent gardenlets", corev1beta1.GroupName, []string{"seeds/status", "shoots/status"}, "patch"),
			controller.May("ManagedSeeds of expired certificates", seedmanagementv1alpha1.GroupName, []string{"managedseeds"}, "get", "patch"),
		},
	}
}

// add adds the controller to the manager of the garden. Renewals of Leases do not wake it: it looks at each when it could be too old.
func add(_ context.Context, mgr manager.Manager, deps controller.Deps) error {
	settings := deps.Config.Seed
	r := &reconciler{
		client: deps.Client, live: deps.Live, recorder: deps.Recorder, clock: deps.Clock, seen: map[string]Observation{},
		monitor: settings.MonitorPeriod.Duration, shoots: settings.ShootMonitorPeriod.Duration,
	}
	return controller.Start(mgr, name, r, settings.ConcurrentSyncs,
		controller.On(&corev1beta1.Seed{}, nil, controller.Changes(func(before, after *corev1beta1.Seed) bool {
			return (len(before.Status.Conditions) == 0) != (len(after.Status.Conditions) == 0) ||
				isUnknown(before.Status.Conditions, corev1beta1.SeedGardenletReady) != isUnknown(after.Status.Conditions, corev1beta1.SeedGardenletReady)
		})),
		controller.On(&coordinationv1.Lease{}, &handler.Funcs{}, predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}))
}

// renewedAt returns the time of the last renewal of a Lease, or zero.
func renewedAt(lease *coordinationv1.Lease) time.Time {
	if lease.Spec.RenewTime == nil {
		return time.Time{}
	}
	return lease.Spec.RenewTime.Time
}
