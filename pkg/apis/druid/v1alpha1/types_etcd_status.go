package v1alpha1

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EtcdStatus is the observed state of an Etcd.
type EtcdStatus struct {
	// ObservedGeneration is the generation that was reconciled last.
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`
	// ETCD refers to the StatefulSet.
	// +optional
	ETCD *autoscalingv1.CrossVersionObjectReference `json:"etcd,omitempty"`
	// Conditions describe the health of the cluster.
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +optional
	Conditions []Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
	// LastErrors are the errors of the last operation.
	// +listType=atomic
	// +optional
	LastErrors []LastError `json:"lastErrors,omitempty"`
	// LastOperation is the last operation.
	// +optional
	LastOperation *LastOperation `json:"lastOperation,omitempty"`
	// CurrentReplicas is the number of members at the current revision.
	// +optional
	CurrentReplicas int32 `json:"currentReplicas,omitempty"`
	// Replicas is the number of members.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
	// ReadyReplicas is the number of ready members.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
	// Ready reports whether all members are ready.
	// +optional
	Ready *bool `json:"ready,omitempty"`
	// Selector selects the pods, for the subresource scale.
	// +optional
	Selector *string `json:"selector,omitempty"`
	// Members are the members.
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +optional
	Members []EtcdMemberStatus `json:"members,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	// PeerURLTLSEnabled reports whether members use TLS between them.
	// +optional
	PeerURLTLSEnabled *bool `json:"peerUrlTLSEnabled,omitempty"`
}

// ConditionType is the name of a condition.
type ConditionType string

// The types of conditions of an Etcd and of an EtcdCopyBackupsTask.
const (
	// ConditionTypeReady reports whether a majority of members is ready.
	ConditionTypeReady ConditionType = "Ready"
	// ConditionTypeAllMembersReady reports whether all members are ready.
	ConditionTypeAllMembersReady ConditionType = "AllMembersReady"
	// ConditionTypeAllMembersUpdated reports whether all members have the wanted settings.
	ConditionTypeAllMembersUpdated ConditionType = "AllMembersUpdated"
	// ConditionTypeBackupReady reports whether backups are made.
	ConditionTypeBackupReady ConditionType = "BackupReady"
	// ConditionTypeDataVolumesReady reports whether the volumes have no problems.
	ConditionTypeDataVolumesReady ConditionType = "DataVolumesReady"
	// ConditionTypeClusterIDMismatch reports whether members belong to different clusters.
	ConditionTypeClusterIDMismatch ConditionType = "ClusterIDMismatch"
	// ConditionTypeLastSnapshotCompactionSucceeded reports whether the last merge of snapshots worked.
	ConditionTypeLastSnapshotCompactionSucceeded ConditionType = "LastSnapshotCompactionSucceeded"
	// ConditionTypeSucceeded reports that backups were copied.
	ConditionTypeSucceeded ConditionType = "Succeeded"
	// ConditionTypeFailed reports that backups could not be copied.
	ConditionTypeFailed ConditionType = "Failed"
)

// ConditionStatus is the status of a condition.
type ConditionStatus string

// The values of ConditionStatus.
const (
	// ConditionTrue means that the condition holds.
	ConditionTrue ConditionStatus = "True"
	// ConditionFalse means that the condition does not hold.
	ConditionFalse ConditionStatus = "False"
	// ConditionUnknown means that it is not known whether the condition holds.
	ConditionUnknown ConditionStatus = "Unknown"
	// ConditionProgressing means that work towards the condition is under way.
	ConditionProgressing ConditionStatus = "Progressing"
)

// Condition describes one aspect of the state of an object.
type Condition struct {
	// Type is the name of the aspect.
	Type ConditionType `json:"type"`
	// Status reports whether the condition holds.
	Status ConditionStatus `json:"status"`
	// LastTransitionTime is the time at which the status changed last.
	LastTransitionTime metav1.Time `json:"lastTransitionTime"`
	// LastUpdateTime is the time at which the condition was updated last.
	LastUpdateTime metav1.Time `json:"lastUpdateTime"`
	// Reason is one word, in CamelCase, for why the condition has its status.
	Reason string `json:"reason"`
	// Message explains the status to a person.
	Message string `json:"message"`
}

// LastError is an error of an operation.
type LastError struct {
	// Code is the code of the error.
	Code string `json:"code"`
	// Description is what went wrong.
	Description string `json:"description"`
	// ObservedAt is the time at which it went wrong.
	ObservedAt metav1.Time `json:"observedAt"`
}

// LastOperation describes the last operation.
type LastOperation struct {
	// Type is the kind of the operation: Create, Reconcile or Delete.
	Type string `json:"type"`
	// State is the state of the operation: Processing, Succeeded, Error or Requeue.
	State string `json:"state"`
	// Description describes what the operation does, or how it ended.
	Description string `json:"description"`
	// RunID identifies the run of the operation.
	RunID string `json:"runID"`
	// LastUpdateTime is the time at which the operation was updated last.
	LastUpdateTime metav1.Time `json:"lastUpdateTime"`
}

// EtcdMemberStatus is the state of a member.
type EtcdMemberStatus struct {
	// Name is the name of the member.
	Name string `json:"name"`
	// ID is the identifier of the member in etcd.
	// +optional
	ID *string `json:"id,omitempty"`
	// Role is the part that the member plays.
	// +optional
	Role *EtcdRole `json:"role,omitempty"`
	// Status reports whether the member is ready.
	Status EtcdMemberConditionStatus `json:"status"`
	// Reason is one word, in CamelCase, for why the member has its status.
	Reason string `json:"reason"`
	// LastTransitionTime is the time at which the status changed last.
	LastTransitionTime metav1.Time `json:"lastTransitionTime"`
}

// EtcdRole is the part that a member plays.
// +enum
// +kubebuilder:validation:Enum=Leader;Member
type EtcdRole string

// The values of EtcdRole.
const (
	// EtcdRoleLeader leads the others.
	EtcdRoleLeader EtcdRole = "Leader"
	// EtcdRoleMember follows the leader.
	EtcdRoleMember EtcdRole = "Member"
)

// EtcdMemberConditionStatus reports whether a member is ready.
type EtcdMemberConditionStatus string

// The values of EtcdMemberConditionStatus.
const (
	// EtcdMemberStatusReady means that the member is ready.
	EtcdMemberStatusReady EtcdMemberConditionStatus = "Ready"
	// EtcdMemberStatusNotReady means that the member is not ready.
	EtcdMemberStatusNotReady EtcdMemberConditionStatus = "NotReady"
	// EtcdMemberStatusUnknown means that it is not known whether the member is ready.
	EtcdMemberStatusUnknown EtcdMemberConditionStatus = "Unknown"
)
