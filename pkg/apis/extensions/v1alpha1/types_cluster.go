package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Cluster has what extensions need to know of a Shoot. Its name is that of the Shoot's namespace in the Seed.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="The age of the object"
type Cluster struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what is wanted.
	Spec ClusterSpec `json:"spec"`
}

// ClusterList is a list of Cluster objects.
// +kubebuilder:object:root=true
type ClusterList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []Cluster `json:"items"`
}

// ClusterSpec holds the objects of the garden that describe a Shoot, whole.
type ClusterSpec struct {
	// CloudProfile is the CloudProfile. It has the changes of a NamespacedCloudProfile.
	// +kubebuilder:pruning:PreserveUnknownFields
	CloudProfile runtime.RawExtension `json:"cloudProfile"`
	// Seed is the Seed. A self-hosted Shoot has none.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Seed *runtime.RawExtension `json:"seed,omitempty"`
	// Shoot is the Shoot.
	// +kubebuilder:pruning:PreserveUnknownFields
	Shoot runtime.RawExtension `json:"shoot"`
}
