package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ControllerDeployment defines how an extension is deployed. The version core.gardener.cloud/v1 has a clearer form of it.
// +kubebuilder:object:root=true
type ControllerDeployment struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Type is how the extension is deployed. The type helm is built in.
	Type string `json:"type"`
	// ProviderConfig is the configuration of the deployment. For the type helm it is a HelmDeployment.
	// +kubebuilder:pruning:PreserveUnknownFields
	ProviderConfig runtime.RawExtension `json:"providerConfig"`
	// InjectGardenKubeconfig defines whether the extension's pods get a kubeconfig for the garden.
	// +optional
	InjectGardenKubeconfig *bool `json:"injectGardenKubeconfig,omitempty"`
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
