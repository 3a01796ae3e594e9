package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ShootStatus is the observed state of a Shoot.
type ShootStatus struct {
	// Conditions describe the health of the cluster.
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +optional
	Conditions []Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
	// Constraints describe what restricts operations on the cluster.
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +optional
	Constraints []Condition `json:"constraints,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
	// Gardener is the gardenlet that acted on the Shoot last.
	Gardener Gardener `json:"gardener"`
	// IsHibernated reports whether the cluster is switched off.
	IsHibernated bool `json:"hibernated"`
	// LastOperation is the last operation.
	// +optional
	LastOperation *LastOperation `json:"lastOperation,omitempty"`
	// LastErrors are the errors of the last operation, one for each step that failed.
	// +listType=atomic
	// +optional
	LastErrors []LastError `json:"lastErrors,omitempty"`
	// ObservedGeneration is the generation that the gardenlet has seen last.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// RetryCycleStartTime is the time since which a failing operation is retried.
	// +optional
	RetryCycleStartTime *metav1.Time `json:"retryCycleStartTime,omitempty"`
	// SeedName is the name of the Seed that hosts the control plane; while it moves, the one that it leaves.
	// +optional
	SeedName *string `json:"seedName,omitempty"`
	// TechnicalID is the name of the Shoot in its Seed and in the infrastructure, such as shoot--project--name. It is
	// immutable.
	TechnicalID string `json:"technicalID"`
	// UID is the unique identifier of the cluster. It is immutable.
	UID types.UID `json:"uid"`
	// ClusterIdentity is the identity of the cluster. It is immutable.
	// +optional
	ClusterIdentity *string `json:"clusterIdentity,omitempty"`
	// AdvertisedAddresses are the addresses under which the cluster can be reached.
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +optional
	AdvertisedAddresses []ShootAdvertisedAddress `json:"advertisedAddresses,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	// MigrationStartTime is the time at which the control plane began to move.
	// +optional
	MigrationStartTime *metav1.Time `json:"migrationStartTime,omitempty"`
	// Credentials is the state of the credentials of the cluster.
	// +optional
	Credentials *ShootCredentials `json:"credentials,omitempty"`
	// LastHibernationTriggerTime is the time up to which the hibernation schedules have been executed.
	// +optional
	LastHibernationTriggerTime *metav1.Time `json:"lastHibernationTriggerTime,omitempty"`
	// LastMaintenance describes the last maintenance.
	// +optional
	LastMaintenance *LastMaintenance `json:"lastMaintenance,omitempty"`
	// Networking is the networks that are in use.
	// +optional
	Networking *NetworkingStatus `json:"networking,omitempty"`
	// InPlaceUpdates names the worker pools with pending in-place updates.
	// +optional
	InPlaceUpdates *InPlaceUpdatesStatus `json:"inPlaceUpdates,omitempty"`
	// ManualWorkerPoolRollout names the worker pools that are rolled out on request.
	// +optional
	ManualWorkerPoolRollout *ManualWorkerPoolRollout `json:"manualWorkerPoolRollout,omitempty"`
	// LiveMigration is the state of a move to another Seed while the control plane serves.
	// +optional
	LiveMigration *LiveMigrationStatus `json:"liveMigration,omitempty"`
}

// ShootAdvertisedAddress is an address under which a cluster can be reached.
type ShootAdvertisedAddress struct {
	// Name is the name of the address, such as external, internal or unmanaged.
	Name string `json:"name"`
	// URL is the URL of the address: https, a host and, if need be, a port.
	URL string `json:"url"`
	// Application is the name of the application behind the address.
	// +optional
	Application *string `json:"application,omitempty"`
}

// ShootCredentials is the state of the credentials of a cluster.
type ShootCredentials struct {
	// Rotation is the state of their rotation.
	// +optional
	Rotation *ShootCredentialsRotation `json:"rotation,omitempty"`
	// EncryptionAtRest reports what is encrypted in etcd, and how.
	// +optional
	EncryptionAtRest *EncryptionAtRest `json:"encryptionAtRest,omitempty"`
}

// EncryptionAtRest reports what is encrypted in etcd, and how.
type EncryptionAtRest struct {
	// Resources are the resources that are encrypted in addition to Secrets.
	// +listType=atomic
	// +optional
	Resources []string `json:"resources,omitempty"`
	// Provider reports how they are encrypted.
	Provider EncryptionProviderStatus `json:"provider"`
}

// EncryptionProviderStatus reports how objects are encrypted in etcd.
type EncryptionProviderStatus struct {
	// Type is the kind of encryption.
	Type EncryptionProviderType `json:"type"`
}

// ShootCredentialsRotation is the state of the rotation of a cluster's credentials.
type ShootCredentialsRotation struct {
	// CertificateAuthorities is the state of the rotation of certificate authorities.
	// +optional
	CertificateAuthorities *CARotation `json:"certificateAuthorities,omitempty"`
	// SSHKeypair is the state of the rotation of the SSH key pair.
	// +optional
	SSHKeypair *ShootSSHKeypairRotation `json:"sshKeypair,omitempty"`
	// Observability is the state of the rotation of observability passwords.
	// +optional
	Observability *ObservabilityRotation `json:"observability,omitempty"`
	// ServiceAccountKey is the state of the rotation of the key for tokens of service accounts.
	// +optional
	ServiceAccountKey *ServiceAccountKeyRotation `json:"serviceAccountKey,omitempty"`
	// ETCDEncryptionKey is the state of the rotation of the encryption key of etcd.
	// +optional
	ETCDEncryptionKey *ETCDEncryptionKeyRotation `json:"etcdEncryptionKey,omitempty"`
}

// LastMaintenance describes a maintenance of a cluster.
type LastMaintenance struct {
	// Description is what was done.
	Description string `json:"description"`
	// TriggeredTime is the time at which it began.
	TriggeredTime metav1.Time `json:"triggeredTime"`
	// State Processing, Succeeded or Error.
	State LastOperationState `json:"state"`
	// FailureReason why it failed.
	// +optional
	FailureReason *string `json:"failureReason,omitempty"`
}

// NetworkingStatus names the networks of a cluster that are in use.
type NetworkingStatus struct {
	// Pods are the ranges of pods, in CIDR notation.
	// +listType=atomic
	// +optional
	Pods []string `json:"pods,omitempty"`
	// Nodes are the ranges of nodes, in CIDR notation.
	// +listType=atomic
	// +optional
	Nodes []string `json:"nodes,omitempty"`
	// Services are the ranges of Services, in CIDR notation.
	// +listType=atomic
	// +optional
	Services []string `json:"services,omitempty"`
	// EgressCIDRs are the ranges from which traffic leaves the cluster, in CIDR notation.
	// +listType=atomic
	// +optional
	EgressCIDRs []string `json:"egressCIDRs,omitempty"`
}

// InPlaceUpdatesStatus is the state of in-place updates.
type InPlaceUpdatesStatus struct {
	// PendingWorkerUpdates names the worker pools that wait for their update.
	// +optional
	PendingWorkerUpdates *PendingWorkerUpdates `json:"pendingWorkerUpdates,omitempty"`
}

// PendingWorkerUpdates names the worker pools that wait for an in-place update.
type PendingWorkerUpdates struct {
	// AutoInPlaceUpdate are the names of pools that are updated automatically.
	// +listType=atomic
	// +optional
	AutoInPlaceUpdate []string `json:"autoInPlaceUpdate,omitempty"`
	// ManualInPlaceUpdate are the names of pools that the user has to update.
	// +listType=atomic
	// +optional
	ManualInPlaceUpdate []string `json:"manualInPlaceUpdate,omitempty"`
}

// ManualWorkerPoolRollout is the state of roll-outs that a user requested.
type ManualWorkerPoolRollout struct {
	// PendingWorkersRollouts list the worker pools that wait for their roll-out.
	// +listType=atomic
	// +optional
	PendingWorkersRollouts []PendingWorkersRollout `json:"pendingWorkersRollouts,omitempty"`
}

// LiveMigrationStatus is the state of a move to another Seed while the control plane serves.
type LiveMigrationStatus struct {
	// Conditions describe the steps of the move.
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +optional
	Conditions []Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}
