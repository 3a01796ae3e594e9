package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BackupSpec holds the settings of backups.
// +kubebuilder:validation:XValidation:rule="!has(self.garbageCollectionPeriod) || !has(self.deltaSnapshotPeriod) || duration(self.garbageCollectionPeriod) > duration(self.deltaSnapshotPeriod)",message="garbageCollectionPeriod must be longer than deltaSnapshotPeriod"
type BackupSpec struct {
	// Port is the port of the process that makes backups.
	// +optional
	Port *int32 `json:"port,omitempty"`
	// TLS is the certificates for connections with this process.
	// +optional
	TLS *TLSConfig `json:"tls,omitempty"`
	// Image is the image of the container.
	// +optional
	Image *string `json:"image,omitempty"`
	// Store configures where backups are stored. Without it, backups are not created.
	// +optional
	Store *StoreSpec `json:"store,omitempty"`
	// Resources is the resource requests and limits of the container.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
	// SnapshotCompaction holds the settings of the jobs that merge snapshots.
	// +optional
	SnapshotCompaction *SnapshotCompactionSpec `json:"snapshotCompaction,omitempty"`
	// FullSnapshotSchedule when full snapshots are made, as a cron expression with five fields.
	// +optional
	FullSnapshotSchedule *string `json:"fullSnapshotSchedule,omitempty"`
	// GarbageCollectionPolicy defines which snapshots are deleted.
	// +optional
	GarbageCollectionPolicy *GarbageCollectionPolicy `json:"garbageCollectionPolicy,omitempty"`
	// MaxBackupsLimitBasedGC is the number of full snapshots that the policy LimitBased keeps.
	// +optional
	MaxBackupsLimitBasedGC *int32 `json:"maxBackupsLimitBasedGC,omitempty"`
	// GarbageCollectionPeriod is the time between two deletions of snapshots.
	// +optional
	GarbageCollectionPeriod *metav1.Duration `json:"garbageCollectionPeriod,omitempty"`
	// DeltaSnapshotPeriod is the time between two delta snapshots.
	// +optional
	DeltaSnapshotPeriod *metav1.Duration `json:"deltaSnapshotPeriod,omitempty"`
	// DeltaSnapshotMemoryLimit is the size of changes in memory at which a delta snapshot is made.
	// +optional
	DeltaSnapshotMemoryLimit *resource.Quantity `json:"deltaSnapshotMemoryLimit,omitempty"`
	// DeltaSnapshotRetentionPeriod is the time for which delta snapshots are kept.
	// +optional
	DeltaSnapshotRetentionPeriod *metav1.Duration `json:"deltaSnapshotRetentionPeriod,omitempty"`
	// Compression defines how snapshots are compressed.
	// +optional
	Compression *CompressionSpec `json:"compression,omitempty"`
	// EnableProfiling defines whether profiles can be fetched.
	// +optional
	EnableProfiling *bool `json:"enableProfiling,omitempty"`
	// ETCDSnapshotTimeout is the time in which a snapshot must be made.
	// +optional
	ETCDSnapshotTimeout *metav1.Duration `json:"etcdSnapshotTimeout,omitempty"`
	// LeaderElection holds the settings for finding the member that makes backups.
	// +optional
	LeaderElection *LeaderElectionSpec `json:"leaderElection,omitempty"`
}

// GarbageCollectionPolicy defines which snapshots are deleted.
// +enum
// +kubebuilder:validation:Enum=Exponential;LimitBased
type GarbageCollectionPolicy string

// The values of GarbageCollectionPolicy.
const (
	// GarbageCollectionPolicyExponential keeps fewer snapshots the older they are.
	GarbageCollectionPolicyExponential GarbageCollectionPolicy = "Exponential"
	// GarbageCollectionPolicyLimitBased keeps a number of snapshots.
	GarbageCollectionPolicyLimitBased GarbageCollectionPolicy = "LimitBased"
)

// StoreSpec configures where backups are stored.
type StoreSpec struct {
	// Container is the name of the bucket.
	// +optional
	Container *string `json:"container,omitempty"`
	// Prefix is the path in the bucket.
	Prefix string `json:"prefix"`
	// Provider is the type of the infrastructure that keeps the bucket.
	// +optional
	Provider *string `json:"provider,omitempty"`
	// SecretRef refers to the Secret with the credentials.
	// +optional
	SecretRef *corev1.SecretReference `json:"secretRef,omitempty"`
}

// SnapshotCompactionSpec holds the settings of the jobs that merge snapshots.
type SnapshotCompactionSpec struct {
	// Resources is the resource requests and limits of the container.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
	// EventsThreshold is the number of changes since the last full snapshot at which a job starts.
	// +optional
	EventsThreshold *int64 `json:"eventsThreshold,omitempty"`
	// TriggerFullSnapshotThreshold is the number of changes at which a full snapshot is made instead.
	// +optional
	TriggerFullSnapshotThreshold *int64 `json:"triggerFullSnapshotThreshold,omitempty"`
}

// CompressionSpec defines how snapshots are compressed.
type CompressionSpec struct {
	// Enabled defines whether they are.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
	// Policy is the algorithm.
	// +optional
	Policy *CompressionPolicy `json:"policy,omitempty"`
}

// CompressionPolicy is an algorithm of compression.
// +enum
// +kubebuilder:validation:Enum=gzip;lzw;zlib
type CompressionPolicy string

// The values of CompressionPolicy.
const (
	// GzipCompression is gzip.
	GzipCompression CompressionPolicy = "gzip"
	// LzwCompression is LZW.
	LzwCompression CompressionPolicy = "lzw"
	// ZlibCompression is zlib.
	ZlibCompression CompressionPolicy = "zlib"
)

// LeaderElectionSpec holds the settings for finding the member that makes backups.
type LeaderElectionSpec struct {
	// ReelectionPeriod is the interval between two checks of the leader.
	// +optional
	ReelectionPeriod *metav1.Duration `json:"reelectionPeriod,omitempty"`
	// ETCDConnectionTimeout is the time in which a connection with etcd must be made.
	// +optional
	ETCDConnectionTimeout *metav1.Duration `json:"etcdConnectionTimeout,omitempty"`
}
