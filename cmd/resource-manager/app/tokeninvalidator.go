package app

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	configv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/config/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/tokeninvalidator"
)

// addTokenInvalidator adds the controller that labels Secrets with static tokens of the target cluster if it is enabled.
// It needs its own cache, because a cache has only one selector and one transform for each kind, and other controllers
// need other Secrets and Pods.
func addTokenInvalidator(ctx context.Context, mgr manager.Manager, config *configv1alpha1.ResourceManagerConfiguration,
	targetCluster cluster.Cluster,
) error {
	settings := config.Controllers.TokenInvalidator
	if !settings.Enabled {
		return nil
	}
	if !config.Webhooks.TokenInvalidator.Enabled {
		mgr.GetLogger().Info("The token invalidator labels Secrets, but their tokens remain valid unless another resource-manager serves " +
			"its webhook: also enable webhooks.tokenInvalidator")
	}
	tokens, err := newTargetCache(config, targetCluster,
		inNamespaces(tokeninvalidator.CacheOptions(), config.TargetClientConnection.Namespaces))
	if err != nil {
		return fmt.Errorf("create the cache of the token invalidator: %w", err)
	}
	return tokeninvalidator.NewReconciler(targetCluster.GetClient(), newRecorder(targetCluster, "resource-manager"),
		tokeninvalidator.NewMetrics(metrics.Registry), tokeninvalidator.Options{ConcurrentSyncs: *settings.ConcurrentSyncs},
	).AddToManager(ctx, mgr, tokens)
}
