package controllerregistration

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/references"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

// Controller returns the controllers of extensions.
func Controller() controller.Controller {
	return controller.Controller{
		Name: "controllerregistration", Add: addAll, Indexes: indexes(),
		Keeps:   []controller.Keep{controller.Keeping(keepShoot)},
		Selects: selects(),
		Rights: []controller.Right{
			controller.May("installations of extensions", corev1beta1.GroupName, []string{"controllerinstallations"},
				"create", "get", "list", "watch", "patch", "delete"),
			controller.May("the condition that summarizes the extensions of a Seed", corev1beta1.GroupName, []string{"seeds/status"}, "patch"),
			controller.May("finalizers", corev1beta1.GroupName, []string{"seeds"}, "get", "list", "watch", "patch"),
			controller.May("extensions", corev1beta1.GroupName, []string{"controllerdeployments", "controllerregistrations"}, controller.Reads()...),
			controller.May("backups that need extensions", corev1beta1.GroupName, []string{"backupbuckets", "backupentries"}, controller.Reads()...),
			controller.May("Shoots that need extensions", corev1beta1.GroupName, []string{"shoots"}, controller.Reads()...),
			controller.May("finalizers of objects that ControllerDeployments name", "", []string{"secrets", "configmaps"},
				"get", "list", "watch", "patch"),
			controller.May("Events", "events.k8s.io", []string{"events"}, "create", "patch"),
		},
	}
}

// addAll adds the controllers to the manager of the garden.
func addAll(_ context.Context, mgr manager.Manager, deps controller.Deps) error {
	c := controllers{cached: deps.Client, uncached: deps.Live, recorder: deps.Recorder}
	registrations, deployments := deps.Config.ControllerRegistration.ConcurrentSyncs, deps.Config.ControllerDeployment.ConcurrentSyncs
	check := deps.Config.SeedExtensionsCheck
	return errors.Join(c.addSeeds(mgr, registrations), c.addReferences(mgr, deployments),
		c.addReady(mgr, check.ConcurrentSyncs, check.Threshold(corev1beta1.SeedExtensionsReady), deps.Clock))
}

// controllers contains the clients of all controllers.
type controllers struct {
	// cached reads from the cache of the garden and writes to its API server. uncached reads from the API server.
	cached   client.Client
	uncached client.Reader
	recorder events.EventRecorder
}

// protector returns what adds and releases finalizers.
func (c controllers) protector() controller.Protector {
	return controller.Deps{Client: c.cached, Live: c.uncached, Recorder: c.recorder}.Protector()
}

// addSeeds adds the controller of the installations in each Seed. It watches everything that the decision depends on.
func (c controllers) addSeeds(mgr manager.Manager, syncs *int) error {
	toSeeds := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		return controller.Requests(seedsOf(object)...)
	})
	toAll := handler.EnqueueRequestsFromMapFunc(c.allSeeds)
	generation := predicate.GenerationChangedPredicate{}
	return controller.Start(mgr, "controllerregistration-seed", &seedReconciler{controllers: c}, syncs,
		controller.On(&corev1beta1.Seed{}, &handler.EnqueueRequestForObject{}, controller.Changes(func(before, after *corev1beta1.Seed) bool {
			return before.Generation != after.Generation || !equality.Semantic.DeepEqual(before.Labels, after.Labels)
		})),
		controller.On(&corev1beta1.ControllerRegistration{}, toAll, controller.Changes(func(before, after *corev1beta1.ControllerRegistration) bool {
			return before.Generation != after.Generation || !equality.Semantic.DeepEqual(before.Annotations, after.Annotations)
		})),
		controller.On(&gardencorev1.ControllerDeployment{}, toAll, controller.Changes(func(before, after *gardencorev1.ControllerDeployment) bool {
			return !equality.Semantic.DeepEqual([]any{before.Helm, before.Resources, before.InjectGardenKubeconfig, before.Annotations},
				[]any{after.Helm, after.Resources, after.InjectGardenKubeconfig, after.Annotations})
		})),
		controller.On(&corev1beta1.ControllerInstallation{}, toSeeds, controller.Changes(func(before, after *corev1beta1.ControllerInstallation) bool {
			return !equality.Semantic.DeepEqual(before.Spec, after.Spec) || !equality.Semantic.DeepEqual(before.Labels, after.Labels) ||
				!equality.Semantic.DeepEqual(before.Finalizers, after.Finalizers) || required(before) != required(after)
		})),
		controller.On(&corev1beta1.BackupBucket{}, toAll, generation),
		controller.On(&corev1beta1.BackupEntry{}, toSeeds, controller.Changes(func(before, after *corev1beta1.BackupEntry) bool {
			return before.Generation != after.Generation || !equality.Semantic.DeepEqual(before.Status.SeedName, after.Status.SeedName)
		})),
		controller.On(&corev1beta1.Shoot{}, toSeeds, controller.Changes(func(before, after *corev1beta1.Shoot) bool {
			return !equality.Semantic.DeepEqual(before.Spec, after.Spec) || !equality.Semantic.DeepEqual(
				before.Status.SeedName, after.Status.SeedName,
			)
		})),
		controller.On(watches.MetadataOf(references.Secret), toAll, predicate.ResourceVersionChangedPredicate{}),
		controller.On(watches.MetadataOf(references.ConfigMap), toAll, predicate.ResourceVersionChangedPredicate{}),
	)
}

// required returns the status of the condition Required.
func required(installation *corev1beta1.ControllerInstallation) corev1beta1.ConditionStatus {
	for _, condition := range installation.Status.Conditions {
		if condition.Type == corev1beta1.ControllerInstallationRequired {
			return condition.Status
		}
	}
	return ""
}

// allSeeds returns a request for each Seed.
func (c controllers) allSeeds(ctx context.Context, _ client.Object) []reconcile.Request {
	var seeds corev1beta1.SeedList
	if err := c.cached.List(ctx, &seeds, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the process ends, or the cache has not synced and its watch reports all Seeds once it has
	}
	names := make([]string, 0, len(seeds.Items))
	for i := range seeds.Items {
		names = append(names, seeds.Items[i].Name)
	}
	return controller.Requests(names...)
}
