package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Quota limits what the Shoots with certain credentials or of a Project may use.
// +kubebuilder:object:root=true
type Quota struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what is wanted.
	// +optional
	Spec QuotaSpec `json:"spec,omitempty"`
}

// QuotaList is a list of Quota objects.
// +kubebuilder:object:root=true
type QuotaList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []Quota `json:"items"`
}

// QuotaSpec is the desired state of a Quota.
type QuotaSpec struct {
	// ClusterLifetimeDays is the number of days after which a Shoot is deleted.
	// +optional
	ClusterLifetimeDays *int32 `json:"clusterLifetimeDays,omitempty"`
	// Metrics are the limits: cpu, gpu, memory, storage.standard, storage.premium, loadbalancer.
	Metrics corev1.ResourceList `json:"metrics"`
	// Scope is the kind of what the limits apply to: Project, Secret or WorkloadIdentity. It is immutable.
	Scope corev1.ObjectReference `json:"scope"`
}
