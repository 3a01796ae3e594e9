package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"

	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
)

// APIVersion and kind of the configuration.
const (
	APIVersion = "operator.config.gardener.cloud/v1alpha1"
	Kind       = "OperatorConfiguration"
)

// OperatorConfiguration is the configuration of an operator.
type OperatorConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// RuntimeClientConnection configures the connection to the runtime cluster. Without a kubeconfig, the process runs in a Pod of it.
	RuntimeClientConnection componentbaseconfigv1alpha1.ClientConnectionConfiguration `json:"runtimeClientConnection"`
	// VirtualClientConnection configures the connection to the virtual garden. Its kubeconfig is that of the Secret gardener-internal,
	// which the operator makes. Rule: no kubeconfig.
	VirtualClientConnection componentbaseconfigv1alpha1.ClientConnectionConfiguration `json:"virtualClientConnection"`
	// LeaderElection decides which replica works. Defaults: those of component-base, resourceLock leases, resourceNamespace garden,
	// resourceName gardener-operator-leader-election.
	// +optional
	LeaderElection *componentbaseconfigv1alpha1.LeaderElectionConfiguration `json:"leaderElection,omitempty"`
	// LogLevel is the least severe level that is logged. Default: info. Rule: one of info, debug, error.
	LogLevel string `json:"logLevel"`
	// LogFormat is the form of a log line. Default: json. Rule: one of json, text.
	LogFormat string `json:"logFormat"`
	// Server holds the addresses on which the process listens.
	Server ServerConfiguration `json:"server"`
	// Debugging serves Go's profiles on the metrics port. They are off by default, because the port needs no credentials.
	// +optional
	Debugging *componentbaseconfigv1alpha1.DebuggingConfiguration `json:"debugging,omitempty"`
	// FeatureGates switches features on and off by name. Rule: one of those of Gardener's operator. Only DefaultSeccompProfile has an effect.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
	// Controllers configures the controllers.
	Controllers ControllersConfiguration `json:"controllers"`
	// NodeToleration are the tolerations of Pods in the runtime cluster for nodes that are not ready or unreachable.
	// +optional
	NodeToleration *gardenletv1alpha1.NodeToleration `json:"nodeToleration,omitempty"`
}

// ServerConfiguration holds the addresses on which the process listens.
type ServerConfiguration struct {
	// Webhooks serves the webhooks. Default port: 2750.
	// +optional
	Webhooks *Server `json:"webhooks,omitempty"`
	// HealthProbes serves /healthz and /readyz. Default port: 2751.
	// +optional
	HealthProbes *Server `json:"healthProbes,omitempty"`
	// Metrics serves /metrics. Default port: 2752.
	// +optional
	Metrics *Server `json:"metrics,omitempty"`
}

// Server is an address to listen on.
type Server struct {
	// BindAddress is the IP address to listen on. Default: empty, which means all addresses.
	BindAddress string `json:"bindAddress"`
	// Port is the TCP port to listen on.
	Port int `json:"port"`
}

// ControllersConfiguration configures the controllers.
type ControllersConfiguration struct {
	// Garden configures the controller of Gardens.
	Garden GardenController `json:"garden"`
	// GardenCare configures the conditions of Gardens.
	GardenCare CareController `json:"gardenCare"`
	// GardenletDeployer configures the deployment of gardenlets.
	GardenletDeployer Concurrency `json:"gardenletDeployer"`
	// NetworkPolicy configures the network policies of namespaces in the runtime cluster.
	NetworkPolicy NetworkPolicyController `json:"networkPolicy"`
	// VPAEvictionRequirements configures when VerticalPodAutoscalers may evict Pods.
	VPAEvictionRequirements Concurrency `json:"vpaEvictionRequirements"`
	// Extension configures the installation of Extensions. Default of concurrentSyncs: 5.
	Extension Concurrency `json:"extension"`
	// ExtensionCare configures the conditions of Extensions. Default of concurrentSyncs: 5.
	ExtensionCare CareController `json:"extensionCare"`
	// ExtensionReference configures the protection of objects that Extensions refer to. Default of concurrentSyncs: 5.
	ExtensionReference Concurrency `json:"extensionReference"`
	// ExtensionRequiredRuntime configures the condition RequiredRuntime of Extensions. Default of concurrentSyncs: 5.
	ExtensionRequiredRuntime Concurrency `json:"extensionRequiredRuntime"`
	// ExtensionRequiredVirtual configures the condition RequiredVirtual of Extensions. Default of concurrentSyncs: 5.
	ExtensionRequiredVirtual Concurrency `json:"extensionRequiredVirtual"`
}

// Concurrencies returns the concurrency of each controller by the name of its field, for defaults and validation.
func (c *ControllersConfiguration) Concurrencies() map[string]*Concurrency {
	return map[string]*Concurrency{
		"garden":                   &c.Garden.Concurrency,
		"gardenCare":               &c.GardenCare.Concurrency,
		"gardenletDeployer":        &c.GardenletDeployer,
		"networkPolicy":            &c.NetworkPolicy.Concurrency,
		"vpaEvictionRequirements":  &c.VPAEvictionRequirements,
		"extension":                &c.Extension,
		"extensionCare":            &c.ExtensionCare.Concurrency,
		"extensionReference":       &c.ExtensionReference,
		"extensionRequiredRuntime": &c.ExtensionRequiredRuntime,
		"extensionRequiredVirtual": &c.ExtensionRequiredVirtual,
	}
}

// Concurrency configures the concurrency of a controller.
type Concurrency struct {
	// ConcurrentSyncs is the number of objects that are reconciled concurrently. Default: 1, unless stated otherwise. Rule: at least 1.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
}

// GardenController configures the controller of Gardens.
type GardenController struct {
	Concurrency `json:",inline"`
	// SyncPeriod is how often a Garden is reconciled without a change. Default: 1h. Rule: more than 0.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
	// ETCDConfig configures the operator of etcd. Default: that of a gardenlet.
	// +optional
	ETCDConfig *gardenletv1alpha1.ETCDConfig `json:"etcdConfig,omitempty"`
}

// CareController configures a controller of conditions.
type CareController struct {
	Concurrency `json:",inline"`
	// SyncPeriod is how often conditions are checked without a change. Default: 1m. Rule: more than 0.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
	// ConditionThresholds are how long a failing condition is Progressing before it becomes False. Default: none, which means
	// immediately. Rule: each type once, and no negative duration.
	// +optional
	ConditionThresholds []gardenletv1alpha1.ConditionThreshold `json:"conditionThresholds,omitempty"`
}

// NetworkPolicyController configures the network policies of namespaces in the runtime cluster.
type NetworkPolicyController struct {
	Concurrency `json:",inline"`
	// AdditionalNamespaceSelectors select further namespaces with network policies.
	// +optional
	AdditionalNamespaceSelectors []metav1.LabelSelector `json:"additionalNamespaceSelectors,omitempty"`
}
