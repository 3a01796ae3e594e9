package flow

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Renderer renders a flow from files, without a cluster.
type Renderer struct {
	// Flow is the name of the flow.
	Flow string
	// Declares describes for users which objects declare an owner, such as "ConfigMaps with the label …".
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

// RenderInputs are the inputs for rendering a flow.
type RenderInputs struct {
	Declaration *unstructured.Unstructured
	// Others are all other objects in the files. They replace the objects that a flow would observe in a cluster, such as
	// extension objects with their status.
	Others []*unstructured.Unstructured
	// Emitted are the existing bundles of the owner if the result is compared with a cluster: see [EmittedFor].
	Emitted []Key
	// Class is the class of the resource-manager, and Version the version of the flow's program.
	Class, Version string
	Now            time.Time
}
