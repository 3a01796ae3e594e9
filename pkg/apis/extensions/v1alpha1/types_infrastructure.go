package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Infrastructure asks an extension for the infrastructure of a Shoot, such as its networks.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=infra
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`,description="The type that an extension is responsible for"
// +kubebuilder:printcolumn:name="Region",type=string,JSONPath=`.spec.region`,description="The region"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.lastOperation.state`,description="The state of the last operation"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="The age of the object"
type Infrastructure struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what is wanted.
	Spec InfrastructureSpec `json:"spec"`
	// Status is what the controllers observed last.
	// +optional
	Status InfrastructureStatus `json:"status,omitempty"`
}

// InfrastructureList is a list of Infrastructure objects.
// +kubebuilder:object:root=true
type InfrastructureList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []Infrastructure `json:"items"`
}

// InfrastructureSpec is the desired state of an Infrastructure.
type InfrastructureSpec struct {
	DefaultSpec `json:",inline"`
	// Region is the region. It is immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	Region string `json:"region"`
	// SecretRef refers to the Secret with the credentials.
	// +kubebuilder:validation:XValidation:rule="has(self.name) && size(self.name) > 0",message="name is required"
	SecretRef corev1.SecretReference `json:"secretRef"`
	// SSHPublicKey are the public key for the nodes.
	// +optional
	SSHPublicKey []byte `json:"sshPublicKey,omitempty"`
}

// InfrastructureStatus is the observed state of an Infrastructure.
type InfrastructureStatus struct {
	DefaultStatus `json:",inline"`
	// NodesCIDR is the range of nodes, in CIDR notation.
	// +optional
	NodesCIDR *string `json:"nodesCIDR,omitempty"`
	// EgressCIDRs are the ranges from which traffic leaves the infrastructure, in CIDR notation.
	// +listType=atomic
	// +optional
	EgressCIDRs []string `json:"egressCIDRs,omitempty"`
	// Networking is the networks that the infrastructure provides.
	// +optional
	Networking *InfrastructureStatusNetworking `json:"networking,omitempty"`
}

// InfrastructureStatusNetworking names the networks that an infrastructure provides.
type InfrastructureStatusNetworking struct {
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
}
