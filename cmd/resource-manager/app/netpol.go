package app

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	networkingv1client "k8s.io/client-go/kubernetes/typed/networking/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	configv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/config/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/netpol"
	netpolcontroller "github.com/trellis-k8s/trellis/pkg/netpol/controller"
	"github.com/trellis-k8s/trellis/pkg/target"
)

// addNetworkPolicies adds the controller of network policies of the target cluster if it is enabled. The controller has
// its own cache, which is reduced to the relevant fields.
func addNetworkPolicies(ctx context.Context, mgr manager.Manager, config *configv1alpha1.ResourceManagerConfiguration,
	targetCluster cluster.Cluster, objects *target.Objects,
) error {
	settings := config.Controllers.NetworkPolicy
	if !settings.Enabled {
		return nil
	}
	decisions, err := networkPolicyConfig(&settings)
	if err != nil {
		return err
	}
	cache, err := newTargetCache(config, targetCluster,
		inNamespaces(netpolcontroller.CacheOptions(), config.TargetClientConnection.Namespaces))
	if err != nil {
		return fmt.Errorf("set up the watches of network policies: %w", err)
	}
	policies, err := networkingv1client.NewForConfigAndClient(targetCluster.GetConfig(), targetCluster.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("create a client of network policies: %w", err)
	}
	return netpolcontroller.NewReconciler(netpolcontroller.Reconciler{
		Cache: cache, Kinds: objects, Policies: policies,
		Pods: objects.CoreClient(), Dynamic: objects.DynamicClient(), Metadata: objects.MetadataClient(),
		Recorder: newRecorder(targetCluster, "resource-manager"),
		Metrics:  netpolcontroller.NewMetrics(metrics.Registry),
		Clock:    clock.RealClock{},
		Options: netpolcontroller.Options{
			Config: decisions, OnlyWhilePodsExist: settings.OnlyWhilePodsExist,
			Namespaces: config.TargetClientConnection.Namespaces, ConcurrentSyncs: *settings.ConcurrentSyncs,
		},
	}).AddToManager(ctx, mgr)
}

// networkPolicyConfig converts the configuration of network policies.
func networkPolicyConfig(settings *configv1alpha1.NetworkPolicyConfiguration) (netpol.Config, error) {
	var result netpol.Config
	for i := range settings.NamespaceSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&settings.NamespaceSelectors[i])
		if err != nil {
			return netpol.Config{}, fmt.Errorf("controllers.networkPolicy.namespaceSelectors[%d] of the configuration: %w", i, err)
		}
		result.NamespaceSelectors = append(result.NamespaceSelectors, selector)
	}
	if controller := settings.IngressControllerSelector; controller != nil {
		result.IngressController = &netpol.Pods{Namespace: controller.Namespace, Selector: controller.PodSelector}
	}
	return result, nil
}
