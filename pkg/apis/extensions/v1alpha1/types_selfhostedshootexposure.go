package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SelfHostedShootExposure asks an extension to expose the API server of a self-hosted Shoot.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=exp
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`,description="The type that an extension is responsible for"
// +kubebuilder:printcolumn:name="IP",type=string,JSONPath=`.status.ingress[0].ip`,description="The IP address"
// +kubebuilder:printcolumn:name="Hostname",type=string,JSONPath=`.status.ingress[0].hostname`,description="The host name"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.lastOperation.state`,description="The state of the last operation"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="The age of the object"
type SelfHostedShootExposure struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what is wanted.
	Spec SelfHostedShootExposureSpec `json:"spec"`
	// Status is what the controllers observed last.
	// +optional
	Status SelfHostedShootExposureStatus `json:"status,omitempty"`
}

// SelfHostedShootExposureList is a list of SelfHostedShootExposure objects.
// +kubebuilder:object:root=true
type SelfHostedShootExposureList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []SelfHostedShootExposure `json:"items"`
}

// SelfHostedShootExposureSpec is the desired state of a SelfHostedShootExposure.
type SelfHostedShootExposureSpec struct {
	DefaultSpec `json:",inline"`
	// CredentialsRef refers to a Secret with the credentials. It is set for managed infrastructure only.
	// +optional
	// +kubebuilder:validation:XValidation:rule="has(self.apiVersion) && self.apiVersion == 'v1' && has(self.kind) && self.kind == 'Secret'",message="must refer to a Secret"
	CredentialsRef *corev1.ObjectReference `json:"credentialsRef,omitempty"`
	// Port is the port of the API server.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`
	// Endpoints are the nodes on which the API server runs.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	Endpoints []ControlPlaneEndpoint `json:"endpoints"`
}

// ControlPlaneEndpoint is a node on which an API server runs.
type ControlPlaneEndpoint struct {
	// NodeName is the name of the node.
	// +kubebuilder:validation:MinLength=1
	NodeName string `json:"nodeName"`
	// Addresses are its addresses.
	// +listType=atomic
	Addresses []corev1.NodeAddress `json:"addresses"`
}

// SelfHostedShootExposureStatus is the observed state of a SelfHostedShootExposure.
type SelfHostedShootExposureStatus struct {
	DefaultStatus `json:",inline"`
	// Ingress are the addresses under which the API server is reached.
	// +listType=atomic
	// +optional
	Ingress []corev1.LoadBalancerIngress `json:"ingress,omitempty"`
}
