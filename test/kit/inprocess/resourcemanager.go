// Package inprocess runs resource-managers in the process of a test, so that the test can intercept their requests, run
// many of them, and set their clock.
package inprocess

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
	"github.com/trellis-k8s/trellis/pkg/cachetransform"
	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/health"
	healthcontroller "github.com/trellis-k8s/trellis/pkg/health/controller"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/managedresource"
	"github.com/trellis-k8s/trellis/pkg/manifest"
	"github.com/trellis-k8s/trellis/pkg/rewatch"
	"github.com/trellis-k8s/trellis/pkg/target"
	"github.com/trellis-k8s/trellis/test/kit"
)

// ResourceManager configures a resource-manager with the controllers of ManagedResources and of their health, wired as in
// the program. The comments describe the defaults.
type ResourceManager struct {
	Scheme *runtime.Scheme
	// Source and Target are the connections to the clusters.
	Source, Target *rest.Config
	// Namespaces are the cached namespaces of both clusters. If there are none, all namespaces are cached.
	Namespaces []string
	// Class is the class of its ManagedResources.
	Class string
	// Identity is the identity of the cluster, and the value of the managed-by label. The default is the class. With its own
	// identity, a resource-manager ignores the objects of all others.
	Identity string
	// SyncPeriod is how often objects without events are reconciled. The default is one hour.
	SyncPeriod time.Duration
	// PruneDelay is how long an object waits for another ManagedResource to take it over.
	PruneDelay time.Duration
	// CollectsGarbage reports whether unreferenced objects are garbage collected.
	CollectsGarbage bool
	// OtherKinds defines the health check of kinds that have no rule of their own. By default, they must not report
	// failures.
	OtherKinds health.OtherKinds
	// ProgressingThreshold is how long an object may progress. By default, it is not limited.
	ProgressingThreshold time.Duration
	// Clock is the clock. The default is the real time.
	Clock clock.WithTicker
	// EndsWork is set if the resource-manager completes running work before it stops, regardless of the time.
	EndsWork bool
}

// Parts are the parts of a resource-manager.
type Parts struct {
	Manager manager.Manager
	Target  cluster.Cluster
	Objects *target.Objects
	Live    *live.View
}

// New returns a resource-manager that is not started yet. The context is for its indexes.
func (r ResourceManager) New(ctx context.Context) (*Parts, error) {
	r = r.complete()
	namespaces := map[string]cache.Config{}
	for _, namespace := range r.Namespaces {
		namespaces[namespace] = cache.Config{}
	}
	options := kit.ManagerOptions(r.Scheme)
	if r.EndsWork {
		options.GracefulShutdownTimeout = ptr.To(time.Duration(-1))
	}
	options.Cache = cache.Options{
		NewInformer:       rewatch.NewInformer,
		DefaultNamespaces: namespaces,
		DefaultTransform:  cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&resourcesv1alpha1.ManagedResource{}: {Transform: cachetransform.NewCompactor().Compact},
		},
	}
	var p Parts
	var err error
	if p.Manager, err = manager.New(r.Source, options); err != nil {
		return nil, err
	}
	p.Target, err = cluster.New(r.Target, func(options *cluster.Options) {
		options.Scheme, options.Cache.DefaultNamespaces, options.Cache.NewInformer = r.Scheme, namespaces, rewatch.NewInformer
	})
	if err != nil {
		return nil, err
	}
	if p.Objects, err = target.NewObjects(r.Target, p.Target.GetHTTPClient()); err != nil {
		return nil, err
	}
	return &p, errors.Join(p.Manager.Add(p.Target), r.addControllers(ctx, &p))
}

func (r ResourceManager) complete() ResourceManager {
	if r.Identity == "" {
		r.Identity = r.Class
	}
	if r.SyncPeriod == 0 {
		r.SyncPeriod = time.Hour
	}
	if r.OtherKinds == "" {
		r.OtherKinds = health.OtherKindsFailuresOnly
	}
	if r.Clock == nil {
		r.Clock = clock.RealClock{}
	}
	return r
}

func (r ResourceManager) addControllers(ctx context.Context, p *Parts) error {
	const concurrent = 5
	examiner := health.NewExaminer(r.OtherKinds, nil)
	p.Live = live.NewView(live.Options{
		Objects: p.Objects, Policy: fieldowner.DefaultPolicy(), Examiner: examiner, ManagedBy: r.Identity, Clock: r.Clock,
	})
	applier := managedresource.NewReconciler(managedresource.Reconciler{
		Source: p.Manager.GetClient(), Direct: p.Manager.GetAPIReader(), Autoscalers: p.Target.GetCache(), Objects: p.Objects, Live: p.Live,
		Engine:   apply.NewEngine(p.Objects, apply.Settings{Policy: fieldowner.DefaultPolicy()}, r.Clock),
		Recorder: p.Manager.GetEventRecorder("resource-manager"), Clock: r.Clock,
		Options: managedresource.Options{
			Class: r.Class, Namespaces: r.Namespaces, ClusterID: r.Identity, ManagedBy: r.Identity,
			SyncPeriod: r.SyncPeriod, PruneDelay: r.PruneDelay, CollectsGarbage: r.CollectsGarbage, ConcurrentSyncs: concurrent,
			Limits: manifest.DefaultLimits(),
		},
	})
	examining := healthcontroller.NewReconciler(healthcontroller.Reconciler{
		Source: p.Manager.GetClient(), Live: p.Live, Objects: p.Objects,
		Recorder: p.Manager.GetEventRecorder("resource-manager"), Clock: r.Clock,
		Options: healthcontroller.Options{
			Class: r.Class, ClusterID: r.Identity, Namespaces: r.Namespaces, SyncPeriod: r.SyncPeriod, ConcurrentSyncs: concurrent,
			ProgressingThreshold: r.ProgressingThreshold,
		},
	})
	return errors.Join(applier.AddToManager(ctx, p.Manager, p.Target.GetCache()), examining.AddToManager(p.Manager))
}
