package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// Gardenlet deploys the gardenlet of a Seed that is not a Shoot. It has the name of the Seed.
// +kubebuilder:object:root=true
type Gardenlet struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what is wanted.
	// +optional
	Spec GardenletSpec `json:"spec,omitempty"`
	// Status is what the controllers observed last.
	// +optional
	Status GardenletStatus `json:"status,omitempty"`
}

// GardenletList is a list of Gardenlet objects.
// +kubebuilder:object:root=true
type GardenletList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []Gardenlet `json:"items"`
}

// GardenletSpec is the desired state of a Gardenlet.
type GardenletSpec struct {
	// Deployment holds the settings of the deployment.
	Deployment GardenletSelfDeployment `json:"deployment"`
	// Config is the configuration of the gardenlet, a GardenletConfiguration.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Config runtime.RawExtension `json:"config,omitempty"`
	// KubeconfigSecretRef refers to a Secret with a kubeconfig of the cluster, for the first deployment. Default: the
	// operator's own cluster.
	// +optional
	KubeconfigSecretRef *corev1.LocalObjectReference `json:"kubeconfigSecretRef,omitempty"`
}

// GardenletSelfDeployment holds the settings of a gardenlet's deployment.
type GardenletSelfDeployment struct {
	GardenletDeployment `json:",inline"`
	// Helm is the Helm chart.
	Helm GardenletHelm `json:"helm"`
	// ImageVectorOverwrite is the images that replace those of the image list, in YAML.
	// +optional
	ImageVectorOverwrite *string `json:"imageVectorOverwrite,omitempty"`
	// ComponentImageVectorOverwrite is the images that replace those of components' image lists, in YAML.
	// +optional
	ComponentImageVectorOverwrite *string `json:"componentImageVectorOverwrite,omitempty"`
}

// GardenletHelm is the Helm chart of the gardenlet.
type GardenletHelm struct {
	// OCIRepository is the OCI artifact with the chart.
	OCIRepository gardencorev1.OCIRepository `json:"ociRepository"`
}

// GardenletStatus is the observed state of a Gardenlet.
type GardenletStatus struct {
	// Conditions describe the state of the deployment.
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +optional
	Conditions []gardencorev1beta1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
	// ObservedGeneration is the generation that was deployed last.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}
