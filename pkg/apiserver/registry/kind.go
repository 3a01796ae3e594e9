// Package registry serves kinds of API objects from etcd. A Kind describes the specific behavior of a kind. The package
// implements the behavior that all kinds share.
package registry

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/trellis-k8s/trellis/pkg/apis/served"
)

// Object is the interface of a kind's Go type, which is a pointer to an API type.
type Object interface {
	runtime.Object
	metav1.Object
}

// Kind describes how a kind is served. Nil functions do nothing, unless their comment states otherwise.
type Kind[T Object] struct {
	// Resource describes the resource for clients: its names, scope, subresources and selectable fields.
	served.Resource
	// New and NewList return empty objects. Both are required.
	New     func() T
	NewList func() runtime.Object

	// SelectableFields returns the values of the fields that the Resource lists.
	SelectableFields func(T) fields.Set
	// IndexedField is the field of SelectableFields for which the watch cache has an index. It is empty if there is none.
	IndexedField string
	// Columns are shown by kubectl between the name of an object and its age.
	Columns []Column[T]
	// AllowUnconditionalUpdate accepts updates without a resourceVersion.
	AllowUnconditionalUpdate bool

	// CopyStatus copies the status from one object to another. It is nil for kinds without a status.
	CopyStatus func(to, from T)
	// GenerationChanges reports whether an update increases metadata.generation. It may modify the new object, for example
	// remove the annotation that requested the increase. If it is nil, the generation is not managed and stays 0. The start
	// of a deletion also increases a managed generation.
	GenerationChanges func(updated, old T) bool
	// StatusGenerationChanges is the same for updates of the status.
	StatusGenerationChanges func(updated, old T) bool

	// Further returns additional subresources by their names, such as binding.
	Further func(*Storage[T]) map[string]rest.Storage

	// Canonicalize converts an object to the stored form.
	Canonicalize func(T)
	// PrepareForCreate, PrepareForUpdate and PrepareForStatusUpdate change an object before it is validated.
	PrepareForCreate       func(context.Context, T)
	PrepareForUpdate       func(ctx context.Context, updated, old T)
	PrepareForStatusUpdate func(ctx context.Context, updated, old T)
	// Validate checks a new object, including its name. ValidateUpdate and ValidateStatusUpdate check a new state against
	// the old one.
	Validate             func(T) field.ErrorList
	ValidateUpdate       func(updated, old T) field.ErrorList
	ValidateStatusUpdate func(updated, old T) field.ErrorList
	// Claim takes what only one object can have, directly before an object is stored. It is the last step that can refuse a request;
	// old is the zero value for a create. The function that it returns undoes it, and is called if the object was certainly not stored.
	Claim func(ctx context.Context, updated, old T) (undo func(context.Context) error, err error)
	// Release gives back what a deleted object claimed.
	Release func(context.Context, T) error
	// Warnings returns the warnings for each accepted create and update. old is the zero value for a create.
	Warnings func(ctx context.Context, updated, old T) []string
}

// GroupResource names the resource in errors and storage.
func (k *Kind[T]) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.Name}
}
