package app

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	configv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/config/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/node/agentdelay"
	"github.com/trellis-k8s/trellis/pkg/node/criticalcomponents"
	"github.com/trellis-k8s/trellis/pkg/node/firstnode"
	"github.com/trellis-k8s/trellis/pkg/node/highavailability"
)

// addNodeControllers adds the enabled controllers of the target cluster's Nodes.
func addNodeControllers(ctx context.Context, mgr manager.Manager, config *configv1alpha1.ResourceManagerConfiguration,
	targetCluster cluster.Cluster,
) error {
	return errors.Join(
		addNodeCriticalComponents(ctx, mgr, config, targetCluster),
		addNodeAgentDelay(mgr, config, targetCluster),
		addNodeHighAvailability(mgr, config, targetCluster),
	)
}

// addNodeCriticalComponents adds the controller that removes the taint of nodes whose critical components are ready.
func addNodeCriticalComponents(ctx context.Context, mgr manager.Manager, config *configv1alpha1.ResourceManagerConfiguration,
	targetCluster cluster.Cluster,
) error {
	settings := config.Controllers.NodeCriticalComponents
	if !settings.Enabled {
		return nil
	}
	namespaces := settings.Namespaces
	if len(namespaces) == 0 {
		namespaces = config.TargetClientConnection.Namespaces
	}
	components, err := newTargetCache(config, targetCluster, criticalcomponents.CacheOptions(namespaces))
	if err != nil {
		return fmt.Errorf("create the cache of nodes' critical components: %w", err)
	}
	csiNodes, err := newTargetCache(config, targetCluster, criticalcomponents.CSINodeCacheOptions())
	if err != nil {
		return fmt.Errorf("create the cache of CSINodes: %w", err)
	}
	return criticalcomponents.NewReconciler(criticalcomponents.Reconciler{
		Nodes: targetCluster.GetCache(), Components: components, CSINodes: csiNodes, Client: targetCluster.GetClient(),
		Metrics: criticalcomponents.NewMetrics(metrics.Registry),
		Clock:   clock.RealClock{},
		Options: criticalcomponents.Options{
			ConcurrentSyncs: *settings.ConcurrentSyncs, Backoff: settings.Backoff.Duration,
		},
	}).AddToManager(ctx, mgr)
}

// addNodeAgentDelay adds the controller that distributes the reconciliations of node agents over time, and the one that lets one node of
// each pool go first.
func addNodeAgentDelay(mgr manager.Manager, config *configv1alpha1.ResourceManagerConfiguration, targetCluster cluster.Cluster) error {
	settings := config.Controllers.NodeAgentReconciliationDelay
	if !settings.Enabled {
		return nil
	}
	secrets, err := newTargetCache(config, targetCluster, agentdelay.CacheOptions())
	if err != nil {
		return fmt.Errorf("create the cache of node agents' Secrets: %w", err)
	}
	reconciler := &agentdelay.Reconciler{
		Nodes: targetCluster.GetCache(), Secrets: secrets, Client: targetCluster.GetClient(),
		Metrics: agentdelay.NewMetrics(metrics.Registry),
		Clock:   clock.RealClock{},
		Options: agentdelay.Options{
			MinDelay: settings.MinDelay.Duration, MaxDelay: settings.MaxDelay.Duration, KeepDelays: settings.KeepDelays,
		},
	}
	if err := reconciler.AddToManager(mgr); err != nil || !settings.FirstNode {
		return err
	}
	first := &firstnode.Reconciler{Nodes: targetCluster.GetCache(), Secrets: secrets, Client: targetCluster.GetClient(), Clock: clock.RealClock{}}
	return first.AddToManager(mgr)
}

// addNodeHighAvailability adds the controller that triggers the high availability webhook again when the number of nodes
// changes between one and several, if that webhook is enabled.
func addNodeHighAvailability(
	mgr manager.Manager, config *configv1alpha1.ResourceManagerConfiguration, targetCluster cluster.Cluster,
) error {
	if !config.Webhooks.HighAvailabilityConfig.Enabled {
		return nil
	}
	reconciler := &highavailability.Reconciler{
		Nodes: targetCluster.GetCache(), Reader: targetCluster.GetAPIReader(), Client: targetCluster.GetClient(),
		Metrics: highavailability.NewMetrics(metrics.Registry),
		Clock:   clock.RealClock{},
		Options: highavailability.Options{Namespaces: config.TargetClientConnection.Namespaces},
	}
	return reconciler.AddToManager(mgr)
}
