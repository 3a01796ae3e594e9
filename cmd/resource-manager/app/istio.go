package app

import (
	"fmt"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	configv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/config/v1alpha1"
	istiocontroller "github.com/trellis-k8s/trellis/pkg/istiocluster/controller"
	"github.com/trellis-k8s/trellis/pkg/target"
)

// addIstioClusterConfiguration adds the controller of EnvoyFilters of the target cluster if it is enabled. The controller
// has its own cache, which is reduced to the relevant fields.
func addIstioClusterConfiguration(mgr manager.Manager, config *configv1alpha1.ResourceManagerConfiguration,
	targetCluster cluster.Cluster, objects *target.Objects,
) error {
	settings := config.Controllers.IstioClusterConfiguration
	if !settings.Enabled {
		return nil
	}
	cache, err := newTargetCache(config, targetCluster, inNamespaces(istiocontroller.CacheOptions(), config.TargetClientConnection.Namespaces))
	if err != nil {
		return fmt.Errorf("set up the watches of Services for Istio: %w", err)
	}
	return istiocontroller.NewReconciler(&istiocontroller.Reconciler{
		Cache: cache, Dynamic: objects.DynamicClient(), Metadata: objects.MetadataClient(), Kinds: objects,
		Metrics: istiocontroller.NewMetrics(metrics.Registry),
		Clock:   clock.RealClock{},
		Options: istiocontroller.Options{Namespaces: config.TargetClientConnection.Namespaces, ConcurrentSyncs: *settings.ConcurrentSyncs},
	}).AddToManager(mgr)
}
