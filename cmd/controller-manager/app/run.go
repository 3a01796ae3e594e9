package app

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	controllermanagerv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/controllermanager/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/served"
	"github.com/trellis-k8s/trellis/pkg/controllermanager"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
	"github.com/trellis-k8s/trellis/pkg/program/manager"
	"github.com/trellis-k8s/trellis/pkg/rewatch"
)

// component is the name of the process in Events and user agents.
const component = "controller-manager"

// run starts a controller-manager. It returns when the context ends or an error occurs.
func run(ctx context.Context, c *controllermanagerv1alpha1.ControllerManagerConfiguration) error {
	config, err := manager.Connect("garden", component+"/"+version, c.GardenClientConnection)
	if err != nil {
		return err
	}
	controllers := controllermanager.Controllers()
	kinds, err := controllers.Cache()
	if err != nil {
		return err
	}
	mgr, err := manager.New(manager.Options{
		Name: component, Version: version, LogLevel: c.LogLevel, LogFormat: c.LogFormat,
		Cluster: "garden", Config: config, Election: c.LeaderElection, Scheme: newScheme(),
		Cache: cache.Options{
			NewInformer: rewatch.NewInformer, DefaultTransform: cache.TransformStripManagedFields(), ByObject: kinds,
		},
		CacheSyncTimeout: c.Controllers.CacheSyncTimeout.Duration,
		Health:           address(c.Server.HealthProbes), Metrics: address(c.Server.Metrics), Debugging: c.Debugging,
	})
	if err != nil {
		return err
	}
	if err := controllers.Add(ctx, mgr, controller.Deps{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Recorder: mgr.Recorder, Config: &c.Controllers,
		Clock: clock.RealClock{},
	}); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(served.AddToScheme(scheme))
	return scheme
}

func address(server *controllermanagerv1alpha1.Server) string {
	return manager.Address(server.BindAddress, server.Port)
}
