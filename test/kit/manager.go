package kit

import (
	"context"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// ManagerOptions are the options of a manager that does not have to be the only one in its process. It serves
// nothing, and its controllers may have duplicate names. It has time to complete running work.
func ManagerOptions(scheme *runtime.Scheme) manager.Options {
	return manager.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller: ctrlconfig.Controller{SkipNameValidation: ptr.To(true)}, GracefulShutdownTimeout: ptr.To(time.Minute),
	}
}

// NewCache returns an additional cache of a cluster for some namespaces (all if there are none), like those of the
// resource-manager. It shares the connections of the cluster.
func NewCache(tb testing.TB, of cluster.Cluster, options cache.Options, namespaces ...string) cache.Cache {
	tb.Helper()
	options.HTTPClient, options.Mapper, options.Scheme = of.GetHTTPClient(), of.GetRESTMapper(), of.GetScheme()
	if len(namespaces) > 0 {
		options.DefaultNamespaces = map[string]cache.Config{}
	}
	for _, namespace := range namespaces {
		options.DefaultNamespaces[namespace] = cache.Config{}
	}
	c, err := cache.New(of.GetConfig(), options)
	Must(tb, err)
	return c
}

// Run runs a manager until the returned function is called, or the test ends.
func Run(tb testing.TB, mgr manager.Manager) (stop func()) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			tb.Errorf("the manager ended with: %v", err)
		}
	})
	tb.Cleanup(stop)
	return stop
}
