package faults

import (
	"context"
	"errors"
	"sync"
	"time"

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

// maxStarts is how often a resource-manager may be started in one run. One fault ends it once, or keeps it from starting once.
const maxStarts = 3

// keepRunning runs resource-managers, one after the other, as a Deployment would: when one has ended, for whatever reason, the
// next one is started. The returned function stops the present one, which finishes what it is about, and returns when nothing of it
// is left.
func (w *world) keepRunning(l *line) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.Context()))
	done := make(chan error, 1)
	go func() {
		var err error
		for starts := 0; ctx.Err() == nil; starts++ {
			if starts == maxStarts {
				done <- errors.Join(errors.New("it ends again and again"), err)
				return
			}
			life := l.newLife()
			err = w.runManager(ctx, life)
			life.end()
		}
		done <- nil
	}()
	stop = sync.OnceFunc(func() {
		w.Helper()
		cancel()
		select {
		case err := <-done:
			if err != nil {
				w.Error(err)
			}
		case <-time.After(kit.Patience):
			w.Error("the resource-manager does not stop")
		}
	})
	w.Cleanup(stop)
	return stop
}

// runManager runs a resource-manager, wired as the program wires it, until the context or its life ends.
func (w *world) runManager(ctx context.Context, l *life) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)()
	config := w.controlPlane.Config()
	config.Wrap(l.wrap)
	inNamespace := map[string]cache.Config{w.namespace: {}}
	options := kit.ManagerOptions(w.client.Scheme())
	// What is begun is finished: nothing may change any more when it has stopped. When it crashes, everything fails at once.
	options.GracefulShutdownTimeout = ptr.To(time.Duration(-1))
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
	if err := w.addControllers(ctx, mgr, config, inNamespace); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func (w *world) addControllers(ctx context.Context, mgr manager.Manager, config *rest.Config, namespaces map[string]cache.Config) error {
	targetCluster, err := cluster.New(config, func(options *cluster.Options) {
		options.Scheme, options.Cache.DefaultNamespaces = mgr.GetScheme(), namespaces
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
			Class: w.class(), ClusterID: w.class(), ManagedBy: w.class(), SyncPeriod: time.Hour, PruneDelay: w.pruneDelay,
			ConcurrentSyncs: 5, Limits: managedresource.DefaultLimits(),
		},
	})
	examining := healthcontroller.NewReconciler(healthcontroller.Reconciler{
		Source: mgr.GetClient(), Live: view, Examiner: examiner, Objects: objects,
		Recorder: mgr.GetEventRecorder("resource-manager"), Clock: clock.RealClock{},
		Options: healthcontroller.Options{Class: w.class(), ClusterID: w.class(), SyncPeriod: time.Hour, ConcurrentSyncs: 5},
	})
	return errors.Join(mgr.Add(targetCluster), applier.AddToManager(ctx, mgr, targetCluster.GetCache()), examining.AddToManager(mgr))
}
