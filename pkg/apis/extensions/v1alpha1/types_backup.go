package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// BackupBucket asks an extension for a bucket for backups of etcd.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=bb
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`,description="The type that an extension is responsible for"
// +kubebuilder:printcolumn:name="Region",type=string,JSONPath=`.spec.region`,description="The region"
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.lastOperation.state`,description="The state of the last operation"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="The age of the object"
type BackupBucket struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what is wanted.
	Spec BackupBucketSpec `json:"spec"`
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
	DefaultSpec `json:",inline"`
	// Region is the region of the bucket. It is immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	Region string `json:"region"`
	// SecretRef refers to the Secret with the credentials.
	// +kubebuilder:validation:XValidation:rule="has(self.name) && size(self.name) > 0",message="name is required"
	SecretRef corev1.SecretReference `json:"secretRef"`
}

// BackupBucketStatus is the observed state of a BackupBucket.
type BackupBucketStatus struct {
	DefaultStatus `json:",inline"`
	// GeneratedSecretRef refers to the Secret with the credentials that the extension generated.
	// +optional
	GeneratedSecretRef *corev1.SecretReference `json:"generatedSecretRef,omitempty"`
}

// BackupEntry asks an extension to hand out, and in the end delete, the backups of one control plane.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=be
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`,description="The type that an extension is responsible for"
// +kubebuilder:printcolumn:name="Region",type=string,JSONPath=`.spec.region`,description="The region"
// +kubebuilder:printcolumn:name="Bucket",type=string,JSONPath=`.spec.bucketName`,description="The name of the bucket"
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.lastOperation.state`,description="The state of the last operation"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="The age of the object"
type BackupEntry struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what is wanted.
	Spec BackupEntrySpec `json:"spec"`
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
	DefaultSpec `json:",inline"`
	// BackupBucketProviderStatus is what the extension reported for the bucket.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	BackupBucketProviderStatus *runtime.RawExtension `json:"backupBucketProviderStatus,omitempty"`
	// Region is the region of the bucket.
	// +kubebuilder:validation:MinLength=1
	Region string `json:"region"`
	// BucketName is the name of the bucket.
	// +kubebuilder:validation:MinLength=1
	BucketName string `json:"bucketName"`
	// SecretRef refers to the Secret with the credentials.
	// +kubebuilder:validation:XValidation:rule="has(self.name) && size(self.name) > 0",message="name is required"
	SecretRef corev1.SecretReference `json:"secretRef"`
}

// BackupEntryStatus is the observed state of a BackupEntry.
type BackupEntryStatus struct {
	DefaultStatus `json:",inline"`
}
