package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Bastion asks an extension for a host through which nodes are reached by SSH.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced
// +kubebuilder:printcolumn:name="IP",type=string,JSONPath=`.status.ingress.ip`,description="The IP address"
// +kubebuilder:printcolumn:name="Hostname",type=string,JSONPath=`.status.ingress.hostname`,description="The host name"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="The age of the object"
type Bastion struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what is wanted.
	Spec BastionSpec `json:"spec"`
	// Status is what the controllers observed last.
	// +optional
	Status BastionStatus `json:"status,omitempty"`
}

// BastionList is a list of Bastion objects.
// +kubebuilder:object:root=true
type BastionList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []Bastion `json:"items"`
}

// BastionSpec is the desired state of a Bastion.
type BastionSpec struct {
	DefaultSpec `json:",inline"`
	// UserData is what the machine runs when it starts. It is immutable. A webhook of the resource-manager checks this: CEL rules decode
	// bytes with the alphabet for URLs, and would refuse each update of most objects.
	// +kubebuilder:validation:MinLength=1
	UserData []byte `json:"userData"`
	// Ingress are the addresses from which the host can be reached.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	Ingress []BastionIngressPolicy `json:"ingress"`
}

// BastionIngressPolicy is a range of addresses from which a host can be reached.
type BastionIngressPolicy struct {
	// IPBlock is the range.
	IPBlock networkingv1.IPBlock `json:"ipBlock"`
}

// BastionStatus is the observed state of a Bastion.
type BastionStatus struct {
	DefaultStatus `json:",inline"`
	// Ingress is the address of the host.
	// +optional
	Ingress *corev1.LoadBalancerIngress `json:"ingress,omitempty"`
}
