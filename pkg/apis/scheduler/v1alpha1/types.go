package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
)

// APIVersion and kind of the configuration.
const (
	APIVersion = "scheduler.config.gardener.cloud/v1alpha1"
	Kind       = "SchedulerConfiguration"
)

// SchedulerConfiguration is the configuration of a scheduler.
type SchedulerConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// ClientConnection configures the connection to the garden. Without a kubeconfig, the process runs in a Pod of the garden.
	ClientConnection componentbaseconfigv1alpha1.ClientConnectionConfiguration `json:"clientConnection"`
	// LeaderElection decides which replica works. Defaults: those of component-base, resourceLock leases, resourceNamespace garden,
	// resourceName gardener-scheduler-leader-election.
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
	// Schedulers configures what is scheduled.
	Schedulers SchedulerControllerConfiguration `json:"schedulers"`
	// FeatureGates is accepted as Gardener has it, and not used.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
}

// SchedulerControllerConfiguration configures what is scheduled.
type SchedulerControllerConfiguration struct {
	// BackupBucket is accepted as Gardener has it, and not used: the Seed of a BackupBucket is known when it is created.
	// +optional
	BackupBucket *BackupBucketSchedulerConfiguration `json:"backupBucket,omitempty"`
	// Shoot configures how Seeds are chosen for Shoots.
	// +optional
	Shoot *ShootSchedulerConfiguration `json:"shoot,omitempty"`
}

// BackupBucketSchedulerConfiguration configures the scheduling of BackupBuckets.
type BackupBucketSchedulerConfiguration struct {
	// ConcurrentSyncs is the number of objects that are scheduled concurrently. Default: 2. Rule: at least 1.
	ConcurrentSyncs int `json:"concurrentSyncs"`
}

// ShootSchedulerConfiguration configures how Seeds are chosen for Shoots.
type ShootSchedulerConfiguration struct {
	// ConcurrentSyncs is the number of Shoots that are scheduled concurrently. Default: 5. Rule: at least 1.
	ConcurrentSyncs int `json:"concurrentSyncs"`
	// Strategy determines which Seeds are near enough to the region of a Shoot. Default: SameRegion. Rule: SameRegion or MinimalDistance.
	Strategy string `json:"candidateDeterminationStrategy"`
}

// ServerConfiguration holds the addresses on which the process listens.
type ServerConfiguration struct {
	// HealthProbes serves /healthz and /readyz. Default port: 10251.
	// +optional
	HealthProbes *Server `json:"healthProbes,omitempty"`
	// Metrics serves /metrics. Default port: 19251.
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
