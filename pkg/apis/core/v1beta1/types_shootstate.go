package v1beta1

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ShootState keeps what a Shoot needs when its control plane moves to another Seed.
// +kubebuilder:object:root=true
type ShootState struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what is wanted.
	// +optional
	Spec ShootStateSpec `json:"spec,omitempty"`
}

// ShootStateList is a list of ShootState objects.
// +kubebuilder:object:root=true
type ShootStateList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []ShootState `json:"items"`
}

// ShootStateSpec is what a Shoot needs on its next Seed.
type ShootStateSpec struct {
	// Gardener are the data of the gardenlet.
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +optional
	Gardener []GardenerResourceData `json:"gardener,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	// Extensions are the states of extension resources.
	// +listType=atomic
	// +optional
	Extensions []ExtensionResourceState `json:"extensions,omitempty"`
	// Resources are the objects that the states refer to.
	// +listType=atomic
	// +optional
	Resources []ResourceData `json:"resources,omitempty"`
}

// GardenerResourceData is data of the gardenlet.
type GardenerResourceData struct {
	// Name is the name of the data, unique.
	Name string `json:"name"`
	// Type is what the data is: secret or machine-state.
	Type string `json:"type"`
	// Data is the data itself.
	// +kubebuilder:pruning:PreserveUnknownFields
	Data runtime.RawExtension `json:"data"`
	// Labels are the labels by which it is found.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
}

// ExtensionResourceState is the state of an extension resource.
type ExtensionResourceState struct {
	// Kind is the kind of the resource.
	Kind string `json:"kind"`
	// Name is its name.
	// +optional
	Name *string `json:"name,omitempty"`
	// Purpose is its purpose, for kinds that have one.
	// +optional
	Purpose *string `json:"purpose,omitempty"`
	// State is the state itself.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	State *runtime.RawExtension `json:"state,omitempty"`
	// Resources name the objects that the state refers to.
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +optional
	Resources []NamedResourceReference `json:"resources,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
}

// ResourceData is an object that a state refers to.
type ResourceData struct {
	autoscalingv1.CrossVersionObjectReference `json:",inline"`
	// Data is the object itself.
	// +kubebuilder:pruning:PreserveUnknownFields
	Data runtime.RawExtension `json:"data"`
}
