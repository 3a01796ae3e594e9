package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// ControllersConfiguration configures the controllers. Each is an object of defaults if it is not set.
type ControllersConfiguration struct {
	// CacheSyncTimeout is how long the start waits for the caches. Default: 2m.
	// +optional
	CacheSyncTimeout *metav1.Duration `json:"cacheSyncTimeout,omitempty"`
	// +optional
	BackupBucket *Concurrency `json:"backupBucket,omitempty"`
	// +optional
	BackupEntry *BackupEntryController `json:"backupEntry,omitempty"`
	// +optional
	Bastion *Concurrency `json:"bastion,omitempty"`
	// +optional
	ControllerInstallation *Concurrency `json:"controllerInstallation,omitempty"`
	// ControllerInstallationCare has the default syncPeriod 30s.
	// +optional
	ControllerInstallationCare *Periodic `json:"controllerInstallationCare,omitempty"`
	// ControllerInstallationRequired has the default concurrentSyncs 1.
	// +optional
	ControllerInstallationRequired *Concurrency `json:"controllerInstallationRequired,omitempty"`
	// +optional
	Gardenlet *GardenletController `json:"gardenlet,omitempty"`
	// +optional
	Seed *SeedController `json:"seed,omitempty"`
	// +optional
	SeedCare *SeedCareController `json:"seedCare,omitempty"`
	// +optional
	Shoot *ShootController `json:"shoot,omitempty"`
	// +optional
	ShootCare *ShootCareController `json:"shootCare,omitempty"`
	// ShootState has the defaults concurrentSyncs 5 and syncPeriod 6h.
	// +optional
	ShootState *Periodic `json:"shootState,omitempty"`
	// ShootStatus has no defaults.
	// +optional
	ShootStatus *Concurrency `json:"shootStatus,omitempty"`
	// +optional
	NetworkPolicy *NetworkPolicyController `json:"networkPolicy,omitempty"`
	// +optional
	ManagedSeed *ManagedSeedController `json:"managedSeed,omitempty"`
	// TokenRequestor has the default concurrentSyncs 5.
	// +optional
	TokenRequestor *Concurrency `json:"tokenRequestor,omitempty"`
	// +optional
	TokenRequestorWorkloadIdentity *WorkloadIdentityController `json:"tokenRequestorWorkloadIdentity,omitempty"`
	// VPAEvictionRequirements has the default concurrentSyncs 5.
	// +optional
	VPAEvictionRequirements *Concurrency `json:"vpaEvictionRequirements,omitempty"`
}

// Concurrency configures the concurrency of a controller.
type Concurrency struct {
	// ConcurrentSyncs is the number of objects that are reconciled concurrently. Default: 20 unless noted otherwise.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
}

// Periodic configures a controller that reconciles its objects periodically.
type Periodic struct {
	Concurrency `json:",inline"`

	// SyncPeriod is that time.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
}

// BackupEntryController configures the controller of BackupEntries.
type BackupEntryController struct {
	Concurrency `json:",inline"`

	// DeletionGracePeriodHours is how long backups are kept after the deletion of the BackupEntry. Default: 0. Rule: not negative.
	// +optional
	DeletionGracePeriodHours *int `json:"deletionGracePeriodHours,omitempty"`
	// DeletionGracePeriodShootPurposes are those of the shoots that this applies to; empty for all. Rule: needs DeletionGracePeriodHours.
	// +optional
	DeletionGracePeriodShootPurposes []gardencorev1beta1.ShootPurpose `json:"deletionGracePeriodShootPurposes,omitempty"`
}

// GardenletController configures the controller of Gardenlets.
type GardenletController struct {
	// SyncPeriod is how often the gardenlet's own Gardenlet is reconciled without an event. Default: 1h.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
}

// SeedController configures the controller of the Seed.
type SeedController struct {
	// SyncPeriod is how often the Seed is reconciled without an event. Default: 1m.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
	// LeaseResyncSeconds is how often the lease of the Seed is renewed. Default: 2.
	// +optional
	LeaseResyncSeconds *int32 `json:"leaseResyncSeconds,omitempty"`
	// LeaseResyncMissThreshold is how often it may fail before the gardenlet is unhealthy. Default: 10.
	// +optional
	LeaseResyncMissThreshold *int32 `json:"leaseResyncMissThreshold,omitempty"`
}

// ConditionThreshold is how long a condition is Progressing before it becomes False.
type ConditionThreshold struct {
	// Type of the condition.
	Type string `json:"type"`
	// Duration for which it is Progressing.
	Duration metav1.Duration `json:"duration"`
}

// SeedCareController configures the controller of the Seed's conditions.
type SeedCareController struct {
	// SyncPeriod is how often they are checked. Default: 30s.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
	// ConditionThresholds by type of condition.
	// +optional
	ConditionThresholds []ConditionThreshold `json:"conditionThresholds,omitempty"`
}

// ShootController configures the controller of Shoots.
type ShootController struct {
	// Periodic has the default syncPeriod 1h.
	Periodic `json:",inline"`

	// ProgressReportPeriod is how often the progress is reported. Default: none, at once.
	// +optional
	ProgressReportPeriod *metav1.Duration `json:"progressReportPeriod,omitempty"`
	// ReconcileInMaintenanceOnly has Shoots reconciled without an event only in their maintenance window. Default: false.
	// +optional
	ReconcileInMaintenanceOnly *bool `json:"reconcileInMaintenanceOnly,omitempty"`
	// RespectSyncPeriodOverwrite lets Shoots set their sync period by annotation. Default: false.
	// +optional
	RespectSyncPeriodOverwrite *bool `json:"respectSyncPeriodOverwrite,omitempty"`
	// RetryDuration is how long an operation is retried until it fails. Default: 12h.
	// +optional
	RetryDuration *metav1.Duration `json:"retryDuration,omitempty"`
	// DNSEntryTTLSeconds is the TTL of DNS records. Default: 120. Rule: 30 to 600.
	// +optional
	DNSEntryTTLSeconds *int64 `json:"dnsEntryTTLSeconds,omitempty"`
	// Rollout configures how fast the changes of a new gardenlet version are rolled out to the Shoots of the Seed. Gardener
	// does not have this field.
	// +optional
	Rollout *ShootRollout `json:"rollout,omitempty"`
}

// ShootRollout configures how fast changes of gardenlet are rolled out to Shoots.
type ShootRollout struct {
	// Budget is how many ManagedResources of control planes may be rolling out at the same time. A Shoot with more of them
	// is changed when nothing else is rolling out. Default: 40. Rule: at least 1.
	// +optional
	Budget *int `json:"budget,omitempty"`
	// Nodes is how many Shoots may have nodes that are changed at the same time. Machines that cannot be drained for hours use
	// it, and not the budget of control planes. Default: 10. Rule: at least 1.
	// +optional
	Nodes *int `json:"nodes,omitempty"`
	// MaxFailed is how many Shoots, or nodes of how many Shoots, may fail with the current version of gardenlet before the other
	// Shoots keep the state of the previous version. Default: 3. Rule: at least 1.
	// +optional
	MaxFailed *int `json:"maxFailed,omitempty"`
}

// ShootCareController configures the controller of the conditions of Shoots.
type ShootCareController struct {
	// Periodic has the default syncPeriod 1m.
	Periodic `json:",inline"`

	// StaleExtensionHealthChecks configures for how long health checks of extensions count. Default: enabled.
	// +optional
	StaleExtensionHealthChecks *StaleExtensionHealthChecks `json:"staleExtensionHealthChecks,omitempty"`
	// ManagedResourceProgressingThreshold is how long a ManagedResource may be progressing.
	// +optional
	ManagedResourceProgressingThreshold *metav1.Duration `json:"managedResourceProgressingThreshold,omitempty"`
	// ConditionThresholds by type of condition.
	// +optional
	ConditionThresholds []ConditionThreshold `json:"conditionThresholds,omitempty"`
	// WebhookRemediatorEnabled changes webhooks of users that keep a control plane from working.
	// +optional
	WebhookRemediatorEnabled *bool `json:"webhookRemediatorEnabled,omitempty"`
}

// StaleExtensionHealthChecks configures for how long health checks of extensions count.
type StaleExtensionHealthChecks struct {
	// Enabled has old health checks reported.
	Enabled bool `json:"enabled"`
	// Threshold is when they are old. Default: 5m.
	// +optional
	Threshold *metav1.Duration `json:"threshold,omitempty"`
}

// NetworkPolicyController configures the controller of NetworkPolicies.
type NetworkPolicyController struct {
	// Concurrency has the default 5.
	Concurrency `json:",inline"`

	// AdditionalNamespaceSelectors select further namespaces that it works in.
	// +optional
	AdditionalNamespaceSelectors []metav1.LabelSelector `json:"additionalNamespaceSelectors,omitempty"`
}

// ManagedSeedController configures the controller of ManagedSeeds.
type ManagedSeedController struct {
	// Periodic has the default syncPeriod 1h.
	Periodic `json:",inline"`

	// WaitSyncPeriod is how often a ManagedSeed whose Shoot is not ready is reconciled. Default: 15s.
	// +optional
	WaitSyncPeriod *metav1.Duration `json:"waitSyncPeriod,omitempty"`
	// SyncJitterPeriod spreads reconciliations. Default: 5m.
	// +optional
	SyncJitterPeriod *metav1.Duration `json:"syncJitterPeriod,omitempty"`
	// JitterUpdates has updates spread, too. Default: false.
	// +optional
	JitterUpdates *bool `json:"jitterUpdates,omitempty"`
}

// WorkloadIdentityController configures the requestor of tokens of WorkloadIdentities.
type WorkloadIdentityController struct {
	// Concurrency has the default 5.
	Concurrency `json:",inline"`

	// TokenExpirationDuration is the validity of tokens. Default: 6h.
	// +optional
	TokenExpirationDuration *metav1.Duration `json:"tokenExpirationDuration,omitempty"`
}

// ETCDConfig configures the operator of etcd.
type ETCDConfig struct {
	// ETCDController configures the controller of Etcds. Default: 50 workers.
	// +optional
	ETCDController *ETCDWorkers `json:"etcdController,omitempty"`
	// CustodianController configures the controller of their status. Default: 10 workers.
	// +optional
	CustodianController *ETCDWorkers `json:"custodianController,omitempty"`
	// BackupCompactionController configures the compaction of backups.
	// +optional
	BackupCompactionController *BackupCompactionController `json:"backupCompactionController,omitempty"`
	// BackupLeaderElection configures the leader election of the backup sidecars.
	// +optional
	BackupLeaderElection *ETCDBackupLeaderElection `json:"backupLeaderElection,omitempty"`
	// FeatureGates of the operator.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
	// DeltaSnapshotRetentionPeriod is how long delta snapshots are kept.
	// +optional
	DeltaSnapshotRetentionPeriod *metav1.Duration `json:"deltaSnapshotRetentionPeriod,omitempty"`
}

// ETCDWorkers configures the concurrency of a controller of the operator.
type ETCDWorkers struct {
	// Workers is the number of objects that are reconciled concurrently.
	// +optional
	Workers *int64 `json:"workers,omitempty"`
}

// BackupCompactionController configures the compaction of backups.
type BackupCompactionController struct {
	// ETCDWorkers has the default 3.
	ETCDWorkers `json:",inline"`

	// EnableBackupCompaction switches it on. Default: false.
	// +optional
	EnableBackupCompaction *bool `json:"enableBackupCompaction,omitempty"`
	// EventsThreshold is the number of changes after which a backup is compacted. Default: 1000000.
	// +optional
	EventsThreshold *int64 `json:"eventsThreshold,omitempty"`
	// ActiveDeadlineDuration is how long a compaction may take. Default: none, the operator's 3h.
	// +optional
	ActiveDeadlineDuration *metav1.Duration `json:"activeDeadlineDuration,omitempty"`
	// MetricsScrapeWaitDuration is how long it waits for its metrics to be read.
	// +optional
	MetricsScrapeWaitDuration *metav1.Duration `json:"metricsScrapeWaitDuration,omitempty"`
}

// ETCDBackupLeaderElection configures the leader election of backup sidecars.
type ETCDBackupLeaderElection struct {
	// ReelectionPeriod is how often the leader is looked for.
	// +optional
	ReelectionPeriod *metav1.Duration `json:"reelectionPeriod,omitempty"`
	// ETCDConnectionTimeout is how long a connection to etcd may take.
	// +optional
	ETCDConnectionTimeout *metav1.Duration `json:"etcdConnectionTimeout,omitempty"`
}
