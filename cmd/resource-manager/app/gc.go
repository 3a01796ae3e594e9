package app

import (
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	configv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/config/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/garbagecollector"
	"github.com/trellis-k8s/trellis/pkg/target"
)

// addGarbageCollector adds the garbage collector of the target cluster if it is enabled.
func addGarbageCollector(mgr manager.Manager, config *configv1alpha1.ResourceManagerConfiguration, objects *target.Objects) error {
	settings := config.Controllers.GarbageCollector
	if !settings.Enabled {
		return nil
	}
	return mgr.Add(garbagecollector.New(garbagecollector.Collector{
		Metadata: objects.MetadataClient(), Dynamic: objects.DynamicClient(), Kinds: objects,
		Metrics: garbagecollector.NewMetrics(metrics.Registry),
		Log:     mgr.GetLogger().WithName(garbagecollector.ControllerName),
		Clock:   clock.RealClock{},
		Options: garbagecollector.Options{
			SyncPeriod: settings.SyncPeriod.Duration, Namespaces: config.TargetClientConnection.Namespaces,
		},
	}))
}
