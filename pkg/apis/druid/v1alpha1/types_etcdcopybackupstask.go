package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EtcdCopyBackupsTask copies the backups of an Etcd from one bucket to another.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="The age of the object"
type EtcdCopyBackupsTask struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what is wanted.
	Spec EtcdCopyBackupsTaskSpec `json:"spec"`
	// Status is what the controllers observed last.
	// +optional
	Status EtcdCopyBackupsTaskStatus `json:"status,omitempty"`
}

// EtcdCopyBackupsTaskList is a list of EtcdCopyBackupsTask objects.
// +kubebuilder:object:root=true
type EtcdCopyBackupsTaskList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []EtcdCopyBackupsTask `json:"items"`
}

// EtcdCopyBackupsTaskSpec is what is copied.
type EtcdCopyBackupsTaskSpec struct {
	// PodLabels further labels of the pod.
	// +optional
	PodLabels map[string]string `json:"podLabels,omitempty"`
	// SourceStore is where backups are copied from.
	SourceStore StoreSpec `json:"sourceStore"`
	// TargetStore is where backups are copied to.
	TargetStore StoreSpec `json:"targetStore"`
	// MaxBackupAge is the number of days for which backups are copied. Default: all.
	// +optional
	MaxBackupAge *uint32 `json:"maxBackupAge,omitempty"`
	// MaxBackups is the number of backups that are copied. Default: all.
	// +optional
	MaxBackups *uint32 `json:"maxBackups,omitempty"`
	// WaitForFinalSnapshot defines whether the copy waits for the final snapshot.
	// +optional
	WaitForFinalSnapshot *WaitForFinalSnapshotSpec `json:"waitForFinalSnapshot,omitempty"`
}

// WaitForFinalSnapshotSpec defines whether a copy waits for the final snapshot.
type WaitForFinalSnapshotSpec struct {
	// Enabled defines whether it waits.
	Enabled bool `json:"enabled"`
	// Timeout is the time that it waits at most. Default: no limit.
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// EtcdCopyBackupsTaskStatus is the state of the copy.
type EtcdCopyBackupsTaskStatus struct {
	// Conditions define whether the copy is done.
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +optional
	Conditions []Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
	// ObservedGeneration is the generation that was reconciled last.
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`
	// LastError is what went wrong last.
	// +optional
	LastError *string `json:"lastError,omitempty"`
}
