package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// BackupBucket is a bucket that keeps backups of etcd.
// +kubebuilder:object:root=true
type BackupBucket struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what is wanted.
	// +optional
	Spec BackupBucketSpec `json:"spec,omitempty"`
	// Status is what the controllers observed last.
	// +optional
	Status BackupBucketStatus `json:"status,omitempty"`
}

// BackupBucketList is a list of BackupBucket objects.
// +kubebuilder:object:root=true
type BackupBucketList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []BackupBucket `json:"items"`
}

// BackupBucketSpec is the desired state of a BackupBucket.
type BackupBucketSpec struct {
	// Provider is the infrastructure that keeps the bucket. It is immutable.
	Provider BackupBucketProvider `json:"provider"`
	// ProviderConfig is the configuration of the bucket, in the format of its extension.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty"`
	// SeedName is the name of the Seed that is responsible. It is immutable.
	// +optional
	SeedName *string `json:"seedName,omitempty"`
	// ShootRef refers to the self-hosted Shoot that is responsible, instead of a Seed. It is immutable.
	// +optional
	ShootRef *corev1.ObjectReference `json:"shootRef,omitempty"`
	// CredentialsRef refers to the credentials: a Secret, an InternalSecret or a WorkloadIdentity.
	// +optional
	CredentialsRef *corev1.ObjectReference `json:"credentialsRef,omitempty"`
}

// BackupBucketProvider is the infrastructure of a bucket.
type BackupBucketProvider struct {
	// Type is the type of the infrastructure.
	Type string `json:"type"`
	// Region is the region of the bucket.
	Region string `json:"region"`
}

// BackupBucketStatus is the observed state of a BackupBucket.
type BackupBucketStatus struct {
	// ProviderStatus is what the extension reports, in its format.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	ProviderStatus *runtime.RawExtension `json:"providerStatus,omitempty"`
	// LastOperation is the last operation.
	// +optional
	LastOperation *LastOperation `json:"lastOperation,omitempty"`
	// LastError is the error of the last operation.
	// +optional
	LastError *LastError `json:"lastError,omitempty"`
	// ObservedGeneration is the generation that the controller has seen last.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// GeneratedSecretRef refers to the Secret with the credentials that the extension generated.
	// +optional
	GeneratedSecretRef *corev1.SecretReference `json:"generatedSecretRef,omitempty"`
}

// BackupEntry is the part of a bucket that keeps the backups of one control plane.
// +kubebuilder:object:root=true
type BackupEntry struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what is wanted.
	// +optional
	Spec BackupEntrySpec `json:"spec,omitempty"`
	// Status is what the controllers observed last.
	// +optional
	Status BackupEntryStatus `json:"status,omitempty"`
}

// BackupEntryList is a list of BackupEntry objects.
// +kubebuilder:object:root=true
type BackupEntryList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []BackupEntry `json:"items"`
}

// BackupEntrySpec is the desired state of a BackupEntry.
type BackupEntrySpec struct {
	// BucketName is the name of the BackupBucket.
	BucketName string `json:"bucketName"`
	// SeedName is the name of the Seed that is responsible.
	// +optional
	SeedName *string `json:"seedName,omitempty"`
	// ShootRef refers to the self-hosted Shoot that is responsible, instead of a Seed.
	// +optional
	ShootRef *corev1.ObjectReference `json:"shootRef,omitempty"`
}

// BackupEntryStatus is the observed state of a BackupEntry.
type BackupEntryStatus struct {
	// LastOperation is the last operation.
	// +optional
	LastOperation *LastOperation `json:"lastOperation,omitempty"`
	// LastError is the error of the last operation.
	// +optional
	LastError *LastError `json:"lastError,omitempty"`
	// ObservedGeneration is the generation that the controller has seen last.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// SeedName is the name of the Seed that acted on the entry last.
	// +optional
	SeedName *string `json:"seedName,omitempty"`
	// MigrationStartTime is the time at which the entry began to move.
	// +optional
	MigrationStartTime *metav1.Time `json:"migrationStartTime,omitempty"`
}
