package flow

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Renderer is a flow as it is rendered without a cluster, from files.
type Renderer struct {
	// Flow is its name.
	Flow string
	// Declares says what declares an owner, for people, such as "ConfigMaps with the label …".
	Declares string
	// IsDeclaration reports whether an object declares an owner of the flow.
	IsDeclaration func(*unstructured.Unstructured) bool
	// ClusterScoped is set if owners have no namespace.
	ClusterScoped bool
	// Plan returns the owner and the plan for a declaration.
	Plan func(RenderInputs) (Owner, Plan, error)
	// Scheme has the types of all objects in the bundles.
	Scheme *runtime.Scheme
}

// RenderInputs are what a flow is rendered from.
type RenderInputs struct {
	Declaration *unstructured.Unstructured
	// Others are the other objects that were given: what a flow would observe in a cluster, such as extension objects with their status.
	Others []*unstructured.Unstructured
	// Emitted are the bundles of the owner that exist, if a cluster is compared with: see [EmittedFor].
	Emitted []Key
	// Class is that of the resource-manager, and Version that of the flow's program.
	Class, Version string
	Now            time.Time
}
