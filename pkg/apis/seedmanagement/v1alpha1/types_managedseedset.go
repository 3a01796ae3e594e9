package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// ManagedSeedSet is a set of ManagedSeeds that are alike, each with its Shoot.
// +kubebuilder:object:root=true
type ManagedSeedSet struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what is wanted.
	// +optional
	Spec ManagedSeedSetSpec `json:"spec,omitempty"`
	// Status is what the controllers observed last.
	// +optional
	Status ManagedSeedSetStatus `json:"status,omitempty"`
}

// ManagedSeedSetList is a list of ManagedSeedSet objects.
// +kubebuilder:object:root=true
type ManagedSeedSetList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []ManagedSeedSet `json:"items"`
}

// ManagedSeedSetSpec is the desired state of a ManagedSeedSet.
type ManagedSeedSetSpec struct {
	// Replicas is the number of ManagedSeeds. Default: 1.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// Selector selects the ManagedSeeds of the set by their labels. It is immutable.
	Selector metav1.LabelSelector `json:"selector"`
	// Template is the ManagedSeeds.
	Template ManagedSeedTemplate `json:"template"`
	// ShootTemplate is the Shoots.
	ShootTemplate gardencorev1beta1.ShootTemplate `json:"shootTemplate"`
	// UpdateStrategy is how the ManagedSeeds are updated.
	// +optional
	UpdateStrategy *UpdateStrategy `json:"updateStrategy,omitempty"`
	// RevisionHistoryLimit is the number of old revisions that are kept. It is immutable. Default: 10.
	// +optional
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
}

// UpdateStrategy is how the ManagedSeeds of a set are updated.
type UpdateStrategy struct {
	// Type is the strategy. Default: RollingUpdate.
	// +optional
	Type *UpdateStrategyType `json:"type,omitempty"`
	// RollingUpdate holds the settings of a rolling update.
	// +optional
	RollingUpdate *RollingUpdateStrategy `json:"rollingUpdate,omitempty"`
}

// UpdateStrategyType is a strategy to update a set.
// +enum
// +kubebuilder:validation:Enum=RollingUpdate
type UpdateStrategyType string

// The values of UpdateStrategyType.
const (
	// RollingUpdateStrategyType updates one after the other.
	RollingUpdateStrategyType UpdateStrategyType = "RollingUpdate"
)

// RollingUpdateStrategy holds the settings of a rolling update.
type RollingUpdateStrategy struct {
	// Partition is the ordinal from which on ManagedSeeds are updated. Default: 0.
	// +optional
	Partition *int32 `json:"partition,omitempty"`
}

// ManagedSeedSetStatus is the observed state of a ManagedSeedSet.
type ManagedSeedSetStatus struct {
	// ObservedGeneration is the generation that the controller has seen last.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Replicas is the number of ManagedSeeds that exist.
	Replicas int32 `json:"replicas"`
	// ReadyReplicas is the number of those that are ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
	// NextReplicaNumber is the ordinal of the next ManagedSeed. It never decreases.
	// +optional
	NextReplicaNumber int32 `json:"nextReplicaNumber,omitempty"`
	// CurrentReplicas is the number of those at the current revision.
	// +optional
	CurrentReplicas int32 `json:"currentReplicas,omitempty"`
	// UpdatedReplicas is the number of those at the update revision.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas,omitempty"`
	// CurrentRevision is the revision before the update.
	// +optional
	CurrentRevision string `json:"currentRevision,omitempty"`
	// UpdateRevision is the revision after the update.
	// +optional
	UpdateRevision string `json:"updateRevision,omitempty"`
	// CollisionCount is the number of collisions of revision names.
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty"`
	// Conditions describe the state of the set.
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +optional
	Conditions []gardencorev1beta1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
	// PendingReplica is the ManagedSeed that is created, updated or deleted now.
	// +optional
	PendingReplica *PendingReplica `json:"pendingReplica,omitempty"`
}

// PendingReplica is a ManagedSeed that a set waits for.
type PendingReplica struct {
	// Name is its name.
	Name string `json:"name"`
	// Reason why the set waits.
	Reason PendingReplicaReason `json:"reason"`
	// Since is the time since which it waits.
	Since metav1.Time `json:"since"`
	// Retries is the number of attempts so far.
	// +optional
	Retries *int32 `json:"retries,omitempty"`
}

// PendingReplicaReason is why a set waits for a ManagedSeed.
// +enum
// +kubebuilder:validation:Enum=ShootReconciling;ShootDeleting;ShootReconcileFailed;ShootDeleteFailed;ManagedSeedPreparing;ManagedSeedDeleting;SeedNotReady;ShootNotHealthy
type PendingReplicaReason string

// The values of PendingReplicaReason.
const (
	// ShootReconcilingReason means that the Shoot is being reconciled.
	ShootReconcilingReason PendingReplicaReason = "ShootReconciling"
	// ShootDeletingReason means that the Shoot is being deleted.
	ShootDeletingReason PendingReplicaReason = "ShootDeleting"
	// ShootReconcileFailedReason means that the Shoot failed to reconcile.
	ShootReconcileFailedReason PendingReplicaReason = "ShootReconcileFailed"
	// ShootDeleteFailedReason means that the Shoot failed to be deleted.
	ShootDeleteFailedReason PendingReplicaReason = "ShootDeleteFailed"
	// ManagedSeedPreparingReason means that the ManagedSeed is being prepared.
	ManagedSeedPreparingReason PendingReplicaReason = "ManagedSeedPreparing"
	// ManagedSeedDeletingReason means that the ManagedSeed is being deleted.
	ManagedSeedDeletingReason PendingReplicaReason = "ManagedSeedDeleting"
	// SeedNotReadyReason means that the Seed is not ready.
	SeedNotReadyReason PendingReplicaReason = "SeedNotReady"
	// ShootNotHealthyReason means that the Shoot is not healthy.
	ShootNotHealthyReason PendingReplicaReason = "ShootNotHealthy"
)
