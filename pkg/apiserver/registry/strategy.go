package registry

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/trellis-k8s/trellis/pkg/ratchet"
)

// strategy creates, updates and deletes objects of a kind.
type strategy[T Object] struct {
	runtime.ObjectTyper
	names.NameGenerator

	kind *Kind[T]
}

var (
	_ rest.RESTCreateStrategy  = strategy[Object]{}
	_ rest.RESTUpdateStrategy  = strategy[Object]{}
	_ rest.RESTDeleteStrategy  = strategy[Object]{}
	_ rest.ResetFieldsStrategy = strategy[Object]{}
)

// NamespaceScoped implements rest.RESTCreateStrategy.
func (s strategy[T]) NamespaceScoped() bool { return s.kind.Namespaced }

// AllowCreateOnUpdate implements rest.RESTUpdateStrategy. An update never creates an object.
func (strategy[T]) AllowCreateOnUpdate(context.Context) bool { return false }

// AllowUnconditionalUpdate implements rest.RESTUpdateStrategy.
func (s strategy[T]) AllowUnconditionalUpdate(context.Context) bool {
	return s.kind.AllowUnconditionalUpdate
}

// PrepareForCreate implements rest.RESTCreateStrategy. A new object has no status, and generation 1 if generations are
// managed.
func (s strategy[T]) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	created := obj.(T)
	if s.kind.GenerationChanges != nil {
		created.SetGeneration(1)
	} else {
		created.SetGeneration(0)
	}
	if s.kind.CopyStatus != nil {
		s.kind.CopyStatus(created, s.kind.New())
	}
	if s.kind.PrepareForCreate != nil {
		s.kind.PrepareForCreate(ctx, created)
	}
}

// PrepareForUpdate implements rest.RESTUpdateStrategy. The stored status stays, and the generation increases if the kind
// requires it.
func (s strategy[T]) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	updated, stored := obj.(T), old.(T)
	if s.kind.CopyStatus != nil {
		s.kind.CopyStatus(updated, stored)
	}
	updated.SetGeneration(stored.GetGeneration())
	if s.kind.PrepareForUpdate != nil {
		s.kind.PrepareForUpdate(ctx, updated, stored)
	}
	if s.kind.GenerationChanges != nil && s.kind.GenerationChanges(updated, stored) {
		updated.SetGeneration(stored.GetGeneration() + 1)
	}
}

// Validate implements rest.RESTCreateStrategy.
func (s strategy[T]) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	created := obj.(T)
	if s.kind.Validate != nil {
		return s.kind.Validate(created)
	}
	return validation.ValidateObjectMetaAccessor(created, s.kind.Namespaced, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
}

// ValidateUpdate implements rest.RESTUpdateStrategy. Without rules of the kind it does nothing, because the generic store
// has checked the metadata.
func (s strategy[T]) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validateChanges(s.kind.ValidateUpdate, obj.(T), old.(T))
}

// validateChanges checks an update, but not again what the update does not change: rules become stricter with time, and
// clients must be able to change other fields of an object that was stored before, or release it. No update rule applies to
// the replacement of an object by itself, so that its errors are those of the stored object.
func validateChanges[T Object](validate func(updated, old T) field.ErrorList, updated, old T) field.ErrorList {
	if validate == nil {
		return nil
	}
	found := validate(updated, old)
	if len(found) == 0 {
		return nil
	}
	return ratchet.Errors(updated, old, found, validate(old.DeepCopyObject().(T), old))
}

// Canonicalize implements rest.RESTCreateStrategy.
func (s strategy[T]) Canonicalize(obj runtime.Object) {
	if s.kind.Canonicalize != nil {
		s.kind.Canonicalize(obj.(T))
	}
}

// WarningsOnCreate implements rest.RESTCreateStrategy.
func (s strategy[T]) WarningsOnCreate(ctx context.Context, obj runtime.Object) []string {
	var none T
	return s.warnings(ctx, obj.(T), none)
}

// WarningsOnUpdate implements rest.RESTUpdateStrategy.
func (s strategy[T]) WarningsOnUpdate(ctx context.Context, obj, old runtime.Object) []string {
	return s.warnings(ctx, obj.(T), old.(T))
}

func (s strategy[T]) warnings(ctx context.Context, updated, old T) []string {
	if s.kind.Warnings == nil {
		return nil
	}
	return s.kind.Warnings(ctx, updated, old)
}

// GetResetFields implements rest.ResetFieldsStrategy. A client that applies the main resource does not own the status
// that it sent.
func (s strategy[T]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	if s.kind.CopyStatus == nil {
		return nil
	}
	return s.kind.reset("status")
}

// statusStrategy updates the status of objects of a kind.
type statusStrategy[T Object] struct{ strategy[T] }

// PrepareForUpdate implements rest.RESTUpdateStrategy. Everything except the status stays as stored.
func (s statusStrategy[T]) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	updated, stored := obj.(T), old.(T)
	wanted := updated.DeepCopyObject().(T)
	overwrite(updated, stored.DeepCopyObject())
	s.kind.CopyStatus(updated, wanted)
	updated.SetManagedFields(wanted.GetManagedFields())
	updated.SetResourceVersion(wanted.GetResourceVersion())
	if uid := wanted.GetUID(); uid != "" { // ValidateUpdate compares it
		updated.SetUID(uid)
	}
	if s.kind.PrepareForStatusUpdate != nil {
		s.kind.PrepareForStatusUpdate(ctx, updated, stored)
	}
	if s.kind.StatusGenerationChanges != nil && s.kind.StatusGenerationChanges(updated, stored) {
		updated.SetGeneration(stored.GetGeneration() + 1)
	}
}

// overwrite copies the struct to which one pointer refers to the other.
func overwrite(to, from runtime.Object) {
	reflect.ValueOf(to).Elem().Set(reflect.ValueOf(from).Elem())
}

// ValidateUpdate implements rest.RESTUpdateStrategy. A UID in the request is a precondition: a controller that has not noticed yet that an
// object was deleted does not write its status to another object with this name.
func (s statusStrategy[T]) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	if uid, stored := obj.(T).GetUID(), old.(T).GetUID(); uid != stored {
		return field.ErrorList{field.Invalid(field.NewPath("metadata", "uid"), uid, "another object has this name now")}
	}
	return validateChanges(s.kind.ValidateStatusUpdate, obj.(T), old.(T))
}

// WarningsOnUpdate implements rest.RESTUpdateStrategy. It returns no warnings, because they are meant for users, and
// controllers write the status.
func (statusStrategy[T]) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// GetResetFields implements rest.ResetFieldsStrategy. A client that applies the status owns nothing else.
func (s statusStrategy[T]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return s.kind.reset("metadata", "spec")
}

func (k *Kind[T]) reset(names ...string) map[fieldpath.APIVersion]*fieldpath.Set {
	fields := fieldpath.NewSet()
	for _, name := range names {
		fields.Insert(fieldpath.MakePathOrDie(name))
	}
	return map[fieldpath.APIVersion]*fieldpath.Set{fieldpath.APIVersion(k.GroupVersion().String()): fields}
}
