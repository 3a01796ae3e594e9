package v1beta1

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
)

// Gardener identifies the process that acted on an object last.
type Gardener struct {
	// ID is the name of its pod.
	ID string `json:"id"`
	// Name is the name of the component.
	Name string `json:"name"`
	// Version is its version.
	Version string `json:"version"`
}

// NamedResourceReference gives a resource a name by which other parts of a specification refer to it.
type NamedResourceReference struct {
	// Name is the name of the reference, unique in its list.
	Name string `json:"name"`
	// ResourceRef is the resource, in the namespace of the referring object.
	ResourceRef autoscalingv1.CrossVersionObjectReference `json:"resourceRef"`
}
