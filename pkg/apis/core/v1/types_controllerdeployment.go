package v1

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ControllerDeployment defines how an extension is deployed.
// +kubebuilder:object:root=true
type ControllerDeployment struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Helm is the Helm chart of the extension.
	// +optional
	Helm *HelmControllerDeployment `json:"helm,omitempty"`
	// InjectGardenKubeconfig defines whether the extension's pods get a kubeconfig for the garden.
	// +optional
	InjectGardenKubeconfig *bool `json:"injectGardenKubeconfig,omitempty"`
	// Resources name the Secrets and ConfigMaps that the values of the chart may use.
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +optional
	Resources []NamedResourceReference `json:"resources,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
}

// ControllerDeploymentList is a list of ControllerDeployment objects.
// +kubebuilder:object:root=true
type ControllerDeploymentList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []ControllerDeployment `json:"items"`
}

// NamedResourceReference gives a resource a name by which the values of a chart refer to it.
type NamedResourceReference struct {
	// Name is the name of the reference, of letters and digits, unique in its list.
	Name string `json:"name"`
	// ResourceRef is the resource, in the namespace garden.
	ResourceRef autoscalingv1.CrossVersionObjectReference `json:"resourceRef"`
}

// HelmControllerDeployment is the Helm chart of an extension. It has a raw chart or an OCI repository.
type HelmControllerDeployment struct {
	// RawChart are the chart, as a compressed archive.
	// +optional
	RawChart []byte `json:"rawChart,omitempty"`
	// Values is the values of the chart. Texts may refer to data of the resources.
	// +optional
	Values *apiextensionsv1.JSON `json:"values,omitempty"`
	// OCIRepository is the OCI artifact with the chart.
	// +optional
	OCIRepository *OCIRepository `json:"ociRepository,omitempty"`
}

// OCIRepository refers to an OCI artifact, by one reference or by repository and tag or digest.
// +kubebuilder:validation:XValidation:rule="!has(self.ref) || !(has(self.repository) || has(self.tag) || has(self.digest))",message="repository, tag and digest must not be set together with ref"
// +kubebuilder:validation:XValidation:rule="has(self.ref) || (has(self.repository) && (has(self.tag) || has(self.digest)))",message="ref, or repository and tag or digest, is required"
type OCIRepository struct {
	// Ref is the whole reference.
	// +optional
	Ref *string `json:"ref,omitempty"`
	// Repository is the repository.
	// +optional
	Repository *string `json:"repository,omitempty"`
	// Tag is the tag.
	// +optional
	Tag *string `json:"tag,omitempty"`
	// Digest is the digest, which takes precedence over the tag.
	// +optional
	// +kubebuilder:validation:Pattern=`^sha256:`
	Digest *string `json:"digest,omitempty"`
	// PullSecretRef refers to a Secret with registry credentials in the namespace garden.
	// +optional
	PullSecretRef *corev1.LocalObjectReference `json:"pullSecretRef,omitempty"`
	// CABundleSecretRef refers to a Secret with the certificates of the registry in the namespace garden.
	// +optional
	CABundleSecretRef *corev1.LocalObjectReference `json:"caBundleSecretRef,omitempty"`
}
