// Package registry serves kinds of API objects from etcd. A Kind says what is special about a kind; everything else is
// the same for all of them and written here once.
package registry

import (
	"context"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Object is what a kind's Go type offers: a pointer to an API type.
type Object interface {
	runtime.Object
	metav1.Object
}

// Kind describes how a kind is served. Functions that are nil do nothing, unless their comment says otherwise.
type Kind[T Object] struct {
	// GroupVersionResource names the resource, such as core.gardener.cloud/v1beta1 shoots.
	GroupVersionResource schema.GroupVersionResource
	// Singular is the name of one object in kubectl, such as shoot.
	Singular string
	// ShortNames and Categories are what kubectl accepts beside the name of the resource.
	ShortNames, Categories []string
	// Namespaced kinds live in namespaces, the others in the cluster.
	Namespaced bool
	// New and NewList return empty objects. Both are required.
	New     func() T
	NewList func() runtime.Object

	// ValidateName checks metadata.name; nil for DNS subdomains.
	ValidateName validation.ValidateNameFunc
	// SelectableFields are the field selectors that the kind supports beside metadata.name and metadata.namespace.
	SelectableFields func(T) fields.Set
	// IndexedField is the one of the SelectableFields that the watch cache has an index for; empty for none.
	IndexedField string
	// Columns are shown by kubectl between the name of an object and its age.
	Columns []Column[T]
	// AllowUnconditionalUpdate accepts updates without a resourceVersion.
	AllowUnconditionalUpdate bool

	// CopyStatus copies the status from one object to another. It is nil for kinds without the subresource status.
	CopyStatus func(to, from T)
	// GenerationChanges reports whether an update increases metadata.generation. It may change the new object, such as
	// remove the annotation that asked for it. If it is nil, the generation is not managed and stays 0.
	GenerationChanges func(updated, old T) bool
	// StatusGenerationChanges is the same for updates of the status.
	StatusGenerationChanges func(updated, old T) bool

	// Canonicalize brings an object into the form that is stored.
	Canonicalize func(T)
	// PrepareForCreate, PrepareForUpdate and PrepareForStatusUpdate change an object before it is validated.
	PrepareForCreate       func(context.Context, T)
	PrepareForUpdate       func(ctx context.Context, updated, old T)
	PrepareForStatusUpdate func(ctx context.Context, updated, old T)
	// Validate checks an object that is created. ValidateUpdate and ValidateStatusUpdate check a new state against the old one.
	Validate             func(T) field.ErrorList
	ValidateUpdate       func(updated, old T) field.ErrorList
	ValidateStatusUpdate func(updated, old T) field.ErrorList
	// Warnings are returned to the client with every accepted create and update; old is the zero value for a create.
	Warnings func(ctx context.Context, updated, old T) []string
}
