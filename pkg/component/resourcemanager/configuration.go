package resourcemanager

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/config/v1alpha1"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/networkpolicies"
)

// ResourceClass is the class of the ManagedResources of a seed.
const ResourceClass = "seed"

// The sync periods and concurrency of a seed's gardener-resource-manager.
const (
	collectPeriod = 12 * time.Hour
	applyPeriod   = time.Hour
	healthPeriod  = time.Minute
	workers       = 20
)

// SeedSettings is the configurable part of a seed's resource-manager.
type SeedSettings struct {
	// LogLevel and LogFormat are the settings of gardenlet.
	LogLevel, LogFormat string
	// NodeToleration contains gardenlet's default tolerations of Pods for nodes that are not ready or unreachable; nil for
	// none.
	NodeToleration *gardenletv1alpha1.NodeToleration
	// NetworkPolicies selects gardenlet's additional namespaces with network policies:
	// controllers.networkPolicy.additionalNamespaceSelectors.
	NetworkPolicies []metav1.LabelSelector
	// IngressController selects the Pods of the seed's ingress controller in the namespace; nil for none.
	IngressController map[string]string
	// SeccompProfile enables a default profile in Pods: the feature gate DefaultSeccompProfile.
	SeccompProfile bool
}

// seedConfiguration returns the configuration of a seed's resource-manager, with its defaults.
func seedConfiguration(values Values) *configv1alpha1.ResourceManagerConfiguration {
	settings := values.Seed
	config := &configv1alpha1.ResourceManagerConfiguration{LogLevel: settings.LogLevel, LogFormat: settings.LogFormat}
	config.LeaderElection.ResourceNamespace = values.Namespace
	config.Server.Webhooks.Port = portWebhooks
	config.Server.Webhooks.TLS.ServerCertDir = serverCertPath
	config.Server.HealthProbes = &configv1alpha1.Server{Port: portHealth}
	config.Server.Metrics = &configv1alpha1.Server{Port: portMetrics}

	controllers := &config.Controllers
	controllers.ResourceClass = ptr.To(ResourceClass)
	controllers.GarbageCollector.Enabled, controllers.GarbageCollector.SyncPeriod = true, period(collectPeriod)
	controllers.ManagedResource.ConcurrentSyncs, controllers.ManagedResource.SyncPeriod = ptr.To(workers), period(applyPeriod)
	controllers.ManagedResource.NamespaceServiceAccounts = true // those of control planes
	controllers.Health.ConcurrentSyncs, controllers.Health.SyncPeriod = ptr.To(workers), period(healthPeriod)
	controllers.NetworkPolicy.Enabled = true
	controllers.NetworkPolicy.NamespaceSelectors = networkpolicies.NamespaceSelectors(settings.NetworkPolicies)
	if pods := settings.IngressController; pods != nil {
		controllers.NetworkPolicy.IngressControllerSelector = &configv1alpha1.IngressControllerSelector{
			Namespace: values.Namespace, PodSelector: metav1.LabelSelector{MatchLabels: pods},
		}
	}

	enabled := &config.Webhooks
	enabled.CRDDeletionProtection.Enabled = true
	enabled.ExtensionValidation.Enabled = true
	enabled.ProjectedTokenMount.Enabled = true
	enabled.HighAvailabilityConfig.Enabled = true
	if tolerations := settings.NodeToleration; tolerations != nil {
		enabled.HighAvailabilityConfig.DefaultNotReadyTolerationSeconds = tolerations.DefaultNotReadyTolerationSeconds
		enabled.HighAvailabilityConfig.DefaultUnreachableTolerationSeconds = tolerations.DefaultUnreachableTolerationSeconds
	}
	enabled.SeccompProfile.Enabled = settings.SeccompProfile
	enabled.PodKubeAPIServerLoadBalancing.Enabled = true
	enabled.PodTopologySpreadConstraints.Enabled = true
	enabled.VPAInPlaceUpdates.Enabled = true
	configv1alpha1.SetDefaults(config)
	return config
}

func period(duration time.Duration) *metav1.Duration { return &metav1.Duration{Duration: duration} }

// configurationText returns the file of a configuration without fields that equal the defaults. It returns an error if
// the program would reject the file.
func configurationText(config *configv1alpha1.ResourceManagerConfiguration) (string, error) {
	defaults := &configv1alpha1.ResourceManagerConfiguration{}
	configv1alpha1.SetDefaults(defaults)
	all, err := treeOf(config)
	if err != nil {
		return "", err
	}
	without, err := treeOf(defaults)
	if err != nil {
		return "", err
	}
	tree := differing(all, without)
	tree["apiVersion"], tree["kind"] = configv1alpha1.SchemeGroupVersion.String(), configv1alpha1.Kind
	text, err := yaml.Marshal(tree)
	if err != nil {
		return "", fmt.Errorf("encode the configuration of the resource-manager: %w", err)
	}
	if _, err := configv1alpha1.Parse(text); err != nil {
		return "", fmt.Errorf("validate the configuration of the resource-manager: %w", err)
	}
	return string(text), nil
}

func treeOf(config *configv1alpha1.ResourceManagerConfiguration) (map[string]any, error) {
	text, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("encode the configuration of the resource-manager: %w", err)
	}
	tree := map[string]any{}
	if err := json.Unmarshal(text, &tree); err != nil {
		return nil, fmt.Errorf("read the configuration of the resource-manager: %w", err)
	}
	return tree, nil
}

// differing returns the fields of tree that differ from other.
func differing(tree, other map[string]any) map[string]any {
	result := map[string]any{}
	for key, value := range tree {
		if reflect.DeepEqual(value, other[key]) {
			continue
		}
		inner, isMap := value.(map[string]any)
		otherInner, bothMaps := other[key].(map[string]any)
		if isMap && bothMaps {
			value = differing(inner, otherInner)
		}
		result[key] = value
	}
	return result
}
