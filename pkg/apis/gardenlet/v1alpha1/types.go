package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// APIVersion and kind of the configuration.
const (
	APIVersion = "gardenlet.config.gardener.cloud/v1alpha1"
	Kind       = "GardenletConfiguration"
)

// GardenletConfiguration is the configuration of a gardenlet.
type GardenletConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// GardenClientConnection configures the connection to the garden. Default: an object of defaults.
	// +optional
	GardenClientConnection *GardenClientConnection `json:"gardenClientConnection,omitempty"`
	// SeedClientConnection configures the connection to the seed. Default: an object of defaults.
	// +optional
	SeedClientConnection *SeedClientConnection `json:"seedClientConnection,omitempty"`
	// ShootClientConnection configures the connections to shoots. Default: an object of defaults.
	// +optional
	ShootClientConnection *ShootClientConnection `json:"shootClientConnection,omitempty"`
	// Controllers configures the controllers. Default: an object of defaults.
	// +optional
	Controllers *ControllersConfiguration `json:"controllers,omitempty"`
	// Resources are the capacity of the seed and what of it is reserved.
	// +optional
	Resources *ResourcesConfiguration `json:"resources,omitempty"`
	// LeaderElection decides which replica works. Defaults: those of component-base, resourceLock leases, resourceNamespace garden,
	// resourceName gardenlet-leader-election.
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
	// FeatureGates switches features on and off by name.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
	// SeedConfig is the Seed that the gardenlet registers and works for.
	// +optional
	SeedConfig *SeedConfig `json:"seedConfig,omitempty"`
	// Logging configures the logging stack.
	// +optional
	Logging *Logging `json:"logging,omitempty"`
	// SNI configures the ingress through which API servers of shoots are reached.
	// +optional
	SNI *SNI `json:"sni,omitempty"`
	// ETCDConfig configures the operator of etcd.
	// +optional
	ETCDConfig *ETCDConfig `json:"etcdConfig,omitempty"`
	// ExposureClassHandlers expose API servers of shoots by an ExposureClass.
	// +optional
	ExposureClassHandlers []ExposureClassHandler `json:"exposureClassHandlers,omitempty"`
	// Monitoring configures the monitoring stack.
	// +optional
	Monitoring *MonitoringConfig `json:"monitoring,omitempty"`
	// NodeToleration are the tolerations of Pods in seeds and shoots for nodes that are not ready or unreachable.
	// +optional
	NodeToleration *NodeToleration `json:"nodeToleration,omitempty"`
}

// GardenClientConnection configures the connection to the garden and its credentials.
//
// The embedded fields have the defaults qps 50 and burst 100.
type GardenClientConnection struct {
	componentbaseconfigv1alpha1.ClientConnectionConfiguration `json:",inline"`

	// GardenClusterAddress is the address of the garden's API server in kubeconfigs that the gardenlet writes. Default: that of its own
	// kubeconfig.
	// +optional
	GardenClusterAddress *string `json:"gardenClusterAddress,omitempty"`
	// GardenClusterCACert is the CA of the garden's API server. Default: that of the garden. "none" and "null" stand for no CA.
	// +optional
	GardenClusterCACert []byte `json:"gardenClusterCACert,omitempty"`
	// BootstrapKubeconfig is the Secret in the seed with the kubeconfig that the gardenlet requests its certificate with.
	// +optional
	BootstrapKubeconfig *corev1.SecretReference `json:"bootstrapKubeconfig,omitempty"`
	// KubeconfigSecret is the Secret in the seed in which the gardenlet keeps its kubeconfig.
	// +optional
	KubeconfigSecret *corev1.SecretReference `json:"kubeconfigSecret,omitempty"`
	// KubeconfigValidity configures validity and rotation of the certificate. Default: an object of defaults.
	// +optional
	KubeconfigValidity *KubeconfigValidity `json:"kubeconfigValidity,omitempty"`
}

// KubeconfigValidity configures validity and rotation of the gardenlet's certificate.
type KubeconfigValidity struct {
	// Validity is requested for the certificate. Default: none, the signer's. Rule: at least 10m.
	// +optional
	Validity *metav1.Duration `json:"validity,omitempty"`
	// AutoRotationJitterPercentageMin is the least part of the validity after which it is rotated. Default: 70. Rule: at least 1, and less
	// than AutoRotationJitterPercentageMax.
	// +optional
	AutoRotationJitterPercentageMin *int32 `json:"autoRotationJitterPercentageMin,omitempty"`
	// AutoRotationJitterPercentageMax is the greatest. Default: 90. Rule: at most 100.
	// +optional
	AutoRotationJitterPercentageMax *int32 `json:"autoRotationJitterPercentageMax,omitempty"`
}

// SeedClientConnection configures the connection to the seed. Defaults: qps 50, burst 100.
type SeedClientConnection struct {
	componentbaseconfigv1alpha1.ClientConnectionConfiguration `json:",inline"`
}

// ShootClientConnection configures the connections to shoots. Defaults: qps 50, burst 100.
type ShootClientConnection struct {
	componentbaseconfigv1alpha1.ClientConnectionConfiguration `json:",inline"`
}

// ResourcesConfiguration are the capacity of a seed and what of it is reserved.
type ResourcesConfiguration struct {
	// Capacity of the seed, such as shoots.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
	// Reserved is what is not used for shoots. Rule: not more than the capacity of the same name.
	// +optional
	Reserved corev1.ResourceList `json:"reserved,omitempty"`
}

// ServerConfiguration holds the addresses on which the process listens.
type ServerConfiguration struct {
	// HealthProbes serves /healthz and /readyz. Default port: 2728.
	// +optional
	HealthProbes *Server `json:"healthProbes,omitempty"`
	// Metrics serves /metrics. Default port: 2729.
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

// SeedConfig is the Seed that a gardenlet registers.
type SeedConfig struct {
	gardencorev1beta1.SeedTemplate `json:",inline"`
}

// Logging configures the logging stack.
type Logging struct {
	// Enabled switches the stack on. Default: false.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
	// Vali configures Vali.
	// +optional
	Vali *LoggingBackend `json:"vali,omitempty"`
	// VictoriaLogs configures VictoriaLogs.
	// +optional
	VictoriaLogs *LoggingBackend `json:"victoriaLogs,omitempty"`
	// ShootNodeLogging configures the collection of logs of nodes.
	// +optional
	ShootNodeLogging *ShootNodeLogging `json:"shootNodeLogging,omitempty"`
	// ShootEventLogging configures the collection of Events.
	// +optional
	ShootEventLogging *ShootEventLogging `json:"shootEventLogging,omitempty"`
}

// LoggingBackend configures what stores logs.
type LoggingBackend struct {
	// Enabled switches it on. Default: that of the logging stack.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
	// Garden configures the one of the garden namespace.
	// +optional
	Garden *GardenLogging `json:"garden,omitempty"`
}

// GardenLogging configures what stores logs in the garden namespace.
type GardenLogging struct {
	// Storage is the size of the volume. Default: 100Gi.
	// +optional
	Storage *resource.Quantity `json:"storage,omitempty"`
}

// ShootNodeLogging configures the collection of logs of nodes.
type ShootNodeLogging struct {
	// ShootPurposes are those of the shoots whose nodes' logs are collected.
	// +optional
	ShootPurposes []gardencorev1beta1.ShootPurpose `json:"shootPurposes,omitempty"`
}

// ShootEventLogging configures the collection of Events.
type ShootEventLogging struct {
	// Enabled switches it on. Default: that of the logging stack.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
}

// SNI configures the ingress through which API servers of shoots are reached.
type SNI struct {
	// Ingress is the ingress gateway. Default: an object of defaults.
	// +optional
	Ingress *SNIIngress `json:"ingress,omitempty"`
}

// SNIIngress is an ingress gateway.
type SNIIngress struct {
	// ServiceName is the name of its Service. Default: istio-ingressgateway.
	// +optional
	ServiceName *string `json:"serviceName,omitempty"`
	// ServiceExternalIP is an external IP address of its Service.
	// +optional
	ServiceExternalIP *string `json:"serviceExternalIP,omitempty"`
	// Namespace is that of the gateway. Default: istio-ingress, and istio-ingress-handler-<name> for an ExposureClassHandler.
	// +optional
	Namespace *string `json:"namespace,omitempty"`
	// Labels of its Pods. Default: app=istio-ingressgateway and istio=ingressgateway, or gardener.cloud/role=exposureclass-handler for an
	// ExposureClassHandler.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
}

// ExposureClassHandler exposes API servers of shoots.
type ExposureClassHandler struct {
	// Name of the handler, which ExposureClasses refer to. Rule: a DNS label.
	Name string `json:"name"`
	// LoadBalancerService configures the Service of the gateway.
	LoadBalancerService LoadBalancerServiceConfig `json:"loadBalancerService"`
	// SNI configures the gateway. Default: an object of defaults.
	// +optional
	SNI *SNI `json:"sni,omitempty"`
}

// LoadBalancerServiceConfig configures a Service of type LoadBalancer.
type LoadBalancerServiceConfig struct {
	// Annotations of the Service.
	Annotations map[string]string `json:"annotations"`
	// Class of the load balancer.
	// +optional
	Class *string `json:"class,omitempty"`
}

// MonitoringConfig configures the monitoring stack.
type MonitoringConfig struct {
	// Shoot configures the monitoring of shoots. Default: an object of defaults.
	// +optional
	Shoot *ShootMonitoringConfig `json:"shoot,omitempty"`
}

// ShootMonitoringConfig configures the monitoring of shoots.
type ShootMonitoringConfig struct {
	// Enabled switches it on. Default: true.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
	// RemoteWrite is where metrics are sent.
	// +optional
	RemoteWrite *RemoteWriteMonitoringConfig `json:"remoteWrite,omitempty"`
	// ExternalLabels are added to all metrics.
	// +optional
	ExternalLabels map[string]string `json:"externalLabels,omitempty"`
}

// RemoteWriteMonitoringConfig is where metrics are sent.
type RemoteWriteMonitoringConfig struct {
	// URL receives them.
	URL string `json:"url"`
	// Keep are the names of the metrics that are sent; empty for all.
	// +optional
	Keep []string `json:"keep,omitempty"`
}

// NodeToleration are tolerations for nodes that are not ready or unreachable.
type NodeToleration struct {
	// DefaultNotReadyTolerationSeconds is how long Pods stay on nodes that are not ready.
	// +optional
	DefaultNotReadyTolerationSeconds *int64 `json:"defaultNotReadyTolerationSeconds,omitempty"`
	// DefaultUnreachableTolerationSeconds is how long they stay on nodes that are unreachable.
	// +optional
	DefaultUnreachableTolerationSeconds *int64 `json:"defaultUnreachableTolerationSeconds,omitempty"`
}
