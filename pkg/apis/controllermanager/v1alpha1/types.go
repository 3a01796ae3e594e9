package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
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
}

// ControllersConfiguration configures the controllers.
type ControllersConfiguration struct {
	// CacheSyncTimeout is how long the start waits for the caches. Default: 2m.
	// +optional
	CacheSyncTimeout *metav1.Duration `json:"cacheSyncTimeout,omitempty"`
	// ControllerDeployment configures the controller that keeps ControllerDeployments which are in use.
	// +optional
	ControllerDeployment *Concurrency `json:"controllerDeployment,omitempty"`
	// ControllerRegistration configures the controllers that have extensions installed.
	// +optional
	ControllerRegistration *Concurrency `json:"controllerRegistration,omitempty"`
	// SeedExtensionsCheck configures the controller of the condition ExtensionsReady of Seeds.
	// +optional
	SeedExtensionsCheck *SeedExtensionsCheck `json:"seedExtensionsCheck,omitempty"`
	// ShootHibernation configures the controller that executes hibernation schedules.
	// +optional
	ShootHibernation *ShootHibernation `json:"shootHibernation,omitempty"`
	// ShootRetry configures the controller that retries operations which failed because of a rate limit.
	// +optional
	ShootRetry *ShootRetry `json:"shootRetry,omitempty"`
	// ShootStatusLabel configures the controller of the label with the health of Shoots.
	// +optional
	ShootStatusLabel *Concurrency `json:"shootStatusLabel,omitempty"`
}

// Concurrency configures the concurrency of a controller.
type Concurrency struct {
	// ConcurrentSyncs is the number of objects that are reconciled concurrently. Default: 5. Rule: at least 1.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
}

// SeedExtensionsCheck configures the controller of the condition ExtensionsReady of Seeds.
type SeedExtensionsCheck struct {
	Concurrency `json:",inline"`

	// SyncPeriod is accepted as Gardener has it, and not used: installations are watched.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
	// ConditionThresholds are how long a failing condition is Progressing before it becomes False. Default: none, which
	// means immediately. Rule: type is ExtensionsReady, and the duration is not negative.
	// +optional
	ConditionThresholds []ConditionThreshold `json:"conditionThresholds,omitempty"`
}

// ShootHibernation configures the controller that executes hibernation schedules.
type ShootHibernation struct {
	Concurrency `json:",inline"`

	// TriggerDeadlineDuration is how long after its time a schedule is still executed, for example after an outage. Default:
	// 2h. Rule: not negative.
	// +optional
	TriggerDeadlineDuration *metav1.Duration `json:"triggerDeadlineDuration,omitempty"`
}

// ShootRetry configures the controller that retries operations which failed because of a rate limit.
type ShootRetry struct {
	Concurrency `json:",inline"`

	// RetryPeriod is how long after its failure an operation is retried. Default: 10m. Rule: not negative.
	// +optional
	RetryPeriod *metav1.Duration `json:"retryPeriod,omitempty"`
	// RetryJitterPeriod is how much later at most. Default: 5m. Rule: not negative.
	// +optional
	RetryJitterPeriod *metav1.Duration `json:"retryJitterPeriod,omitempty"`
}

// ConditionThreshold is how long a condition that fails is Progressing.
type ConditionThreshold struct {
	// Type of the condition.
	Type string `json:"type"`
	// Duration for which it is Progressing.
	Duration metav1.Duration `json:"duration"`
}

// Threshold returns how long a condition of a type is Progressing; 0 for not at all.
func (c *SeedExtensionsCheck) Threshold(kind corev1beta1.ConditionType) time.Duration {
	for _, threshold := range c.ConditionThresholds {
		if threshold.Type == string(kind) {
			return threshold.Duration.Duration
		}
	}
	return 0
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
