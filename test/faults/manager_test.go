package faults

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apply"
	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/health"
	healthcontroller "github.com/trellis-k8s/trellis/pkg/health/controller"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/managedresource"
	"github.com/trellis-k8s/trellis/pkg/target"
	"github.com/trellis-k8s/trellis/test/kit"
)

// startManagers runs a resource-manager, and one of the new class if there are ManagedResources that get it.
func (w *world) startManagers(l *line) (stop func()) {
	first := w.keepRunning(l, "", w.manager(w.class()))
	if len(w.reclassed) == 0 {
		return first
	}
	second := w.keepRunning(l, "new", w.manager(w.newClass()))
	return func() { first(); second() }
}

// manager returns a resource-manager of a class, wired as the program wires it.
func (w *world) manager(class string) func(context.Context, *life) error {
	return func(ctx context.Context, l *life) error {
		config := w.controlPlane.Config()
		config.Wrap(l.wrap)
		inNamespace := map[string]cache.Config{w.namespace: {}}
		options := managerOptions(w.client.Scheme())
		options.Cache = cache.Options{
			DefaultNamespaces: inNamespace,
			DefaultTransform:  cache.TransformStripManagedFields(),
			ByObject: map[client.Object]cache.ByObject{
				&resourcesv1alpha1.ManagedResource{}: {Transform: managedresource.NewCompactor().Compact},
			},
		}
		mgr, err := manager.New(config, options)
		if err != nil {
			return err
		}
		if err := w.addControllers(ctx, mgr, config, class); err != nil {
			return err
		}
		return mgr.Start(ctx)
	}
}

// managerOptions are those of a manager that finishes what it has begun: nothing may change any more when it has stopped. When it
// crashes, everything fails at once.
func managerOptions(scheme *runtime.Scheme) manager.Options {
	options := kit.ManagerOptions(scheme)
	options.GracefulShutdownTimeout = ptr.To(time.Duration(-1))
	return options
}

func (w *world) addControllers(ctx context.Context, mgr manager.Manager, config *rest.Config, class string) error {
	targetCluster, err := cluster.New(config, func(options *cluster.Options) {
		options.Scheme, options.Cache.DefaultNamespaces = mgr.GetScheme(), map[string]cache.Config{w.namespace: {}}
	})
	if err != nil {
		return err
	}
	objects, err := target.NewObjects(config, targetCluster.GetHTTPClient())
	if err != nil {
		return err
	}
	examiner := health.NewExaminer(health.OtherKindsFailuresOnly, nil)
	view := live.NewView(live.Options{
		Objects: objects, Policy: fieldowner.DefaultPolicy(), Examiner: examiner, ManagedBy: w.class(), Clock: clock.RealClock{},
	})
	applier := managedresource.NewReconciler(managedresource.Reconciler{
		Source: mgr.GetClient(), Direct: mgr.GetAPIReader(), Autoscalers: targetCluster.GetCache(), Objects: objects, Live: view,
		Engine:   apply.NewEngine(objects, fieldowner.DefaultPolicy(), clock.RealClock{}),
		Recorder: mgr.GetEventRecorder("resource-manager"), Clock: clock.RealClock{},
		Options: managedresource.Options{
			Class: class, ClusterID: w.class(), ManagedBy: w.class(), SyncPeriod: time.Hour, PruneDelay: w.pruneDelay,
			CollectsGarbage: w.collects, ConcurrentSyncs: 5, Limits: managedresource.DefaultLimits(),
		},
	})
	examining := healthcontroller.NewReconciler(healthcontroller.Reconciler{
		Source: mgr.GetClient(), Live: view, Examiner: examiner, Objects: objects,
		Recorder: mgr.GetEventRecorder("resource-manager"), Clock: clock.RealClock{},
		Options: healthcontroller.Options{Class: class, ClusterID: w.class(), SyncPeriod: time.Hour, ConcurrentSyncs: 5},
	})
	if w.collects {
		if err := addCollector(mgr, config, w.namespace, &w.collecting); err != nil {
			return err
		}
	}
	return errors.Join(mgr.Add(targetCluster), applier.AddToManager(ctx, mgr, targetCluster.GetCache()), examining.AddToManager(mgr))
}
