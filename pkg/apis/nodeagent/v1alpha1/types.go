package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
)

// APIVersion and kind of the configuration.
const (
	APIVersion = "nodeagent.config.gardener.cloud/v1alpha1"
	Kind       = "NodeAgentConfiguration"
)

// NodeAgentConfiguration is the configuration of a node agent.
type NodeAgentConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// ClientConnection configures the connection to the cluster of the node. Without a kubeconfig, the node agent uses the one that it wrote
	// itself when it got its certificate.
	ClientConnection componentbaseconfigv1alpha1.ClientConnectionConfiguration `json:"clientConnection"`
	// LogLevel is the least severe level that is logged. Default: info. Rule: one of info, debug, error.
	LogLevel string `json:"logLevel"`
	// LogFormat is the form of a log line. Default: json. Rule: one of json, text.
	LogFormat string `json:"logFormat"`
	// Server holds the addresses on which the process listens.
	Server ServerConfiguration `json:"server"`
	// Debugging is accepted as Gardener has it, and not used.
	// +optional
	Debugging *componentbaseconfigv1alpha1.DebuggingConfiguration `json:"debugging,omitempty"`
	// FeatureGates is accepted as Gardener has it, and not used.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
	// APIServer is the API server of the cluster.
	APIServer APIServer `json:"apiServer"`
	// Bootstrap configures the command bootstrap.
	// +optional
	Bootstrap *BootstrapConfiguration `json:"bootstrap,omitempty"`
	// Controllers configures what the node agent does.
	Controllers ControllerConfiguration `json:"controllers"`
}

// APIServer is the API server of the cluster of the node.
type APIServer struct {
	// Server is its address, for example https://api.example.com. Rule: an https URL.
	Server string `json:"server"`
	// CAFile is the path of the certificates that its certificate is checked with. Rule: an absolute path.
	CAFile string `json:"caFile"`
}

// BootstrapConfiguration configures the command bootstrap.
type BootstrapConfiguration struct {
	// KubeletDataVolumeSize is the size in bytes of the disk that is formatted for the data of kubelet. Default: none. Rule: at least 1.
	// +optional
	KubeletDataVolumeSize *int64 `json:"kubeletDataVolumeSize,omitempty"`
}

// ControllerConfiguration configures what the node agent does.
type ControllerConfiguration struct {
	// OperatingSystemConfig configures how the OperatingSystemConfig is applied.
	OperatingSystemConfig OperatingSystemConfigControllerConfig `json:"operatingSystemConfig"`
	// Token configures which tokens are written to files.
	Token TokenControllerConfig `json:"token"`
	// SystemdUnitCheck configures the check of systemd units.
	SystemdUnitCheck SystemdUnitCheckConfig `json:"systemdUnitCheck"`
}

// OperatingSystemConfigControllerConfig configures how the OperatingSystemConfig is applied.
type OperatingSystemConfigControllerConfig struct {
	// SyncPeriod is accepted as Gardener has it, and not used: changes are watched. Default: 10m. Rule: at least 15s.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
	// SecretName is the name of the Secret in the namespace kube-system that has the OperatingSystemConfig. Rule: not empty.
	SecretName string `json:"secretName"`
	// KubernetesVersion is the version of the kubelet that the OperatingSystemConfig installs. Rule: a semantic version.
	KubernetesVersion string `json:"kubernetesVersion"`
}

// TokenControllerConfig configures which tokens are written to files.
type TokenControllerConfig struct {
	// SyncConfigs are the tokens.
	// +optional
	SyncConfigs []TokenSecretSyncConfig `json:"syncConfigs,omitempty"`
	// SyncPeriod is accepted as Gardener has it, and not used: changes are watched. Default: 1h. Rule: at least 15s.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
}

// TokenSecretSyncConfig is a token that is written to a file.
type TokenSecretSyncConfig struct {
	// SecretName is the name of the Secret in the namespace kube-system that has the token under the key token. Rule: not empty.
	SecretName string `json:"secretName"`
	// Path is the path of the file. Rule: an absolute path that no other entry has.
	Path string `json:"path"`
}

// SystemdUnitCheckConfig configures the check of systemd units.
type SystemdUnitCheckConfig struct {
	// SyncPeriod is the time between two checks. Default: 1m. Rule: at least 15s.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
	// StuckThreshold is how long a unit may be starting or stopping. Default: 5m. Rule: at least 30s.
	// +optional
	StuckThreshold *metav1.Duration `json:"stuckThreshold,omitempty"`
}

// ServerConfiguration holds the addresses on which the process listens.
type ServerConfiguration struct {
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
