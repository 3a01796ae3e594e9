package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// Extension is an extension that the operator installs in the runtime cluster and registers in the garden.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=extop
// +kubebuilder:printcolumn:name="Installed",type=string,JSONPath=`.status.conditions[?(@.type=="Installed")].status`,description="Whether the extension is installed"
// +kubebuilder:printcolumn:name="Required Runtime",type=string,JSONPath=`.status.conditions[?(@.type=="RequiredRuntime")].status`,description="Whether the runtime cluster needs the extension"
// +kubebuilder:printcolumn:name="Required Virtual",type=string,JSONPath=`.status.conditions[?(@.type=="RequiredVirtual")].status`,description="Whether Seeds need the extension"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="The age of the object"
type Extension struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what is wanted.
	// +optional
	Spec ExtensionSpec `json:"spec,omitempty"`
	// Status is what the controllers observed last.
	// +optional
	Status ExtensionStatus `json:"status,omitempty"`
}

// ExtensionList is a list of Extension objects.
// +kubebuilder:object:root=true
type ExtensionList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []Extension `json:"items"`
}

// ExtensionSpec is the desired state of an Extension.
// +kubebuilder:validation:XValidation:rule="has(self.deployment)",message="deployment is required"
type ExtensionSpec struct {
	// Resources are the kinds and types that the extension is responsible for.
	// +listType=atomic
	// +optional
	Resources []gardencorev1beta1.ControllerResource `json:"resources,omitempty"`
	// Deployment defines how the extension is deployed. It is required.
	// +optional
	Deployment *Deployment `json:"deployment,omitempty"`
}

// Deployment defines how an extension is deployed.
// +kubebuilder:validation:XValidation:rule="has(self.extension) || has(self.admission)",message="extension or admission is required"
type Deployment struct {
	// ExtensionDeployment is the extension itself.
	// +optional
	ExtensionDeployment *ExtensionDeploymentSpec `json:"extension,omitempty"`
	// AdmissionDeployment is the admission controller of the extension.
	// +optional
	AdmissionDeployment *AdmissionDeploymentSpec `json:"admission,omitempty"`
	// Resources name the Secrets and ConfigMaps that the values of charts may use.
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +optional
	Resources []gardencorev1beta1.NamedResourceReference `json:"resources,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
}

// ExtensionDeploymentSpec defines how an extension itself is deployed.
type ExtensionDeploymentSpec struct {
	DeploymentSpec `json:",inline"`
	// Values is the values of the chart in Seeds. Texts may refer to data of the resources.
	// +optional
	Values *apiextensionsv1.JSON `json:"values,omitempty"`
	// RuntimeClusterValues is the values of the chart in the runtime cluster.
	// +optional
	RuntimeClusterValues *apiextensionsv1.JSON `json:"runtimeClusterValues,omitempty"`
	// Policy when the extension is installed in a Seed. In effect without a value: OnDemand.
	// +optional
	Policy *gardencorev1beta1.ControllerDeploymentPolicy `json:"policy,omitempty"`
	// SeedSelector selects the Seeds in which it may be installed.
	// +optional
	SeedSelector *metav1.LabelSelector `json:"seedSelector,omitempty"`
	// InjectGardenKubeconfig defines whether the extension's pods get a kubeconfig for the garden.
	// +optional
	InjectGardenKubeconfig *bool `json:"injectGardenKubeconfig,omitempty"`
}

// DeploymentSpec defines which chart is deployed.
type DeploymentSpec struct {
	// Helm is the Helm chart.
	// +optional
	Helm *ExtensionHelm `json:"helm,omitempty"`
}

// ExtensionHelm is the Helm chart of an extension.
// +kubebuilder:validation:XValidation:rule="has(self.ociRepository)",message="ociRepository is required"
type ExtensionHelm struct {
	// OCIRepository is the OCI artifact with the chart.
	// +optional
	OCIRepository *gardencorev1.OCIRepository `json:"ociRepository,omitempty"`
}

// AdmissionDeploymentSpec defines how the admission controller of an extension is deployed.
// +kubebuilder:validation:XValidation:rule="has(self.runtimeCluster) || has(self.virtualCluster)",message="runtimeCluster or virtualCluster is required"
type AdmissionDeploymentSpec struct {
	// RuntimeCluster is the chart for the runtime cluster.
	// +optional
	RuntimeCluster *DeploymentSpec `json:"runtimeCluster,omitempty"`
	// VirtualCluster is the chart for the garden.
	// +optional
	VirtualCluster *DeploymentSpec `json:"virtualCluster,omitempty"`
	// Values is the values of both charts.
	// +optional
	Values *apiextensionsv1.JSON `json:"values,omitempty"`
}

// ExtensionStatus is the observed state of an Extension.
type ExtensionStatus struct {
	// ObservedGeneration is the generation that the operator has seen last.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions describe whether the extension is installed, required and healthy.
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +optional
	Conditions []gardencorev1beta1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
	// ProviderStatus is what the extension reports, in its format.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	ProviderStatus *runtime.RawExtension `json:"providerStatus,omitempty"`
}
