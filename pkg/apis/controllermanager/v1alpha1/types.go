package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
)

// APIVersion and kind of the configuration.
const (
	APIVersion = "controllermanager.config.gardener.cloud/v1alpha1"
	Kind       = "ControllerManagerConfiguration"
)

// ControllerManagerConfiguration is the configuration of a controller-manager.
type ControllerManagerConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// GardenClientConnection configures the connection to the garden. Without a kubeconfig, the process runs in a Pod of the
	// garden.
	GardenClientConnection componentbaseconfigv1alpha1.ClientConnectionConfiguration `json:"gardenClientConnection"`
	// Controllers configures the controllers.
	Controllers ControllersConfiguration `json:"controllers"`
	// LeaderElection decides which replica works. Defaults: those of component-base, resourceLock leases, resourceNamespace garden,
	// resourceName gardener-controller-manager-leader-election.
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
	// FeatureGates is accepted as Gardener has it, and not used: the process has no feature gates.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
}

// ServerConfiguration holds the addresses on which the process listens.
type ServerConfiguration struct {
	// HealthProbes serves /healthz and /readyz. Default port: 2718.
	// +optional
	HealthProbes *Server `json:"healthProbes,omitempty"`
	// Metrics serves /metrics. Default port: 2719.
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
