package health

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
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

// settings are what tests have different from the defaults of the configuration.
type settings struct {
	syncPeriod           time.Duration
	progressingThreshold time.Duration
	otherKinds           health.OtherKinds
}

// resourceManager is a running resource-manager, wired as the program wires it.
type resourceManager struct {
	class   string
	live    *live.View
	objects *target.Objects
	// source and target are the requests to both clusters.
	source, target *kit.Requests
}

// managers counts them.
var managers atomic.Int64

// startManager starts a resource-manager that ends with the test. Its class, identity and managed-by label are its own, so
// that those of other tests have nothing to do with it. Nothing is looked at without an event.
func (f *fixture) startManager(tune ...func(*settings)) *resourceManager {
	f.Helper()
	s := settings{syncPeriod: time.Hour, otherKinds: health.OtherKindsFailuresOnly}
	for _, change := range tune {
		change(&s)
	}
	m := &resourceManager{class: fmt.Sprintf("class-%d", managers.Add(1)), source: &kit.Requests{}, target: &kit.Requests{}}
	sourceConfig, targetConfig := f.controlPlane.Config(), f.controlPlane.Config()
	sourceConfig.Wrap(m.source.Wrap)
	targetConfig.Wrap(m.target.Wrap)

	options := kit.ManagerOptions(scheme(f))
	options.Cache = cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&resourcesv1alpha1.ManagedResource{}: {Transform: managedresource.NewCompactor().Compact},
		},
	}
	mgr, err := manager.New(sourceConfig, options)
	must(f, err)
	must(f, m.addControllers(f.ctx, mgr, targetConfig, s))

	kit.Run(f, mgr)
	return m
}

func (m *resourceManager) addControllers(ctx context.Context, mgr manager.Manager, targetConfig *rest.Config, s settings) error {
	targetCluster, err := cluster.New(targetConfig, func(options *cluster.Options) { options.Scheme = mgr.GetScheme() })
	if err != nil {
		return err
	}
	if m.objects, err = target.NewObjects(targetConfig, targetCluster.GetHTTPClient()); err != nil {
		return err
	}
	examiner := health.NewExaminer(s.otherKinds, nil)
	m.live = live.NewView(live.Options{
		Objects: m.objects, Policy: fieldowner.DefaultPolicy(), Examiner: examiner, ManagedBy: m.class, Clock: clock.RealClock{},
	})
	applier := managedresource.NewReconciler(managedresource.Reconciler{
		Source: mgr.GetClient(), Direct: mgr.GetAPIReader(), Autoscalers: targetCluster.GetCache(), Objects: m.objects, Live: m.live,
		Engine:   apply.NewEngine(m.objects, fieldowner.DefaultPolicy(), clock.RealClock{}),
		Recorder: mgr.GetEventRecorder("resource-manager"), Clock: clock.RealClock{},
		Options: managedresource.Options{
			Class: m.class, ClusterID: m.class, ManagedBy: m.class, SyncPeriod: s.syncPeriod, PruneDelay: 100 * time.Millisecond,
			ConcurrentSyncs: 10, Limits: managedresource.DefaultLimits(),
		},
	})
	examining := healthcontroller.NewReconciler(healthcontroller.Reconciler{
		Source: mgr.GetClient(), Live: m.live, Examiner: examiner, Objects: m.objects,
		Recorder: mgr.GetEventRecorder("resource-manager"), Clock: clock.RealClock{},
		Options: healthcontroller.Options{
			Class: m.class, ClusterID: m.class, SyncPeriod: s.syncPeriod, ConcurrentSyncs: 5,
			ProgressingThreshold: s.progressingThreshold,
		},
	})
	return errors.Join(mgr.Add(targetCluster), applier.AddToManager(ctx, mgr, targetCluster.GetCache()), examining.AddToManager(mgr))
}
