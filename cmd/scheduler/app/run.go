package app

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	schedulerv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/scheduler/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/served"
	"github.com/trellis-k8s/trellis/pkg/program/manager"
	"github.com/trellis-k8s/trellis/pkg/rewatch"
	"github.com/trellis-k8s/trellis/pkg/scheduler"
	"github.com/trellis-k8s/trellis/pkg/scheduler/decision"
)

// component is the name of the process in Events and user agents.
const component = "gardener-scheduler"

// run starts a scheduler. It returns when the context ends or an error occurs.
func run(ctx context.Context, c *schedulerv1alpha1.SchedulerConfiguration) error {
	config, err := manager.Connect("garden", component+"/"+version, c.ClientConnection)
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(served.AddToScheme(scheme))
	mgr, err := manager.New(manager.Options{
		Name: component, Version: version, LogLevel: c.LogLevel, LogFormat: c.LogFormat,
		Cluster: "garden", Config: config, Election: c.LeaderElection, Scheme: scheme,
		Cache: cache.Options{
			NewInformer: rewatch.NewInformer, DefaultTransform: cache.TransformStripManagedFields(), ByObject: scheduler.CacheOptions(),
		},
		Health: address(c.Server.HealthProbes), Metrics: address(c.Server.Metrics), Debugging: c.Debugging,
	})
	if err != nil {
		return err
	}
	if err := scheduler.AddToManager(mgr, scheduler.Options{
		Recorder: mgr.Recorder, Syncs: c.Schedulers.Shoot.ConcurrentSyncs, Strategy: decision.Strategy(c.Schedulers.Shoot.Strategy),
	}); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func address(server *schedulerv1alpha1.Server) string {
	return manager.Address(server.BindAddress, server.Port)
}
