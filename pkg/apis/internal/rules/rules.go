// Package rules has the common checks of the validation of all API groups. Each function returns errors about a value at
// the path of its field.
package rules

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Required returns an error if a value is empty.
func Required(value string, path *field.Path) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return nil
}

// NotEmpty returns an error if an optional value is set, but empty.
func NotEmpty(value *string, path *field.Path) field.ErrorList {
	if value != nil && *value == "" {
		return field.ErrorList{field.Invalid(path, "", "must not be empty if it is set")}
	}
	return nil
}

// OneOf returns an error if a value is empty or not allowed.
func OneOf[T ~string](value T, path *field.Path, allowed ...T) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return OptionalOneOf(&value, path, allowed...)
}

// OptionalOneOf returns an error if a value is set, but not allowed.
func OptionalOneOf[T ~string](value *T, path *field.Path, allowed ...T) field.ErrorList {
	if value == nil || slices.Contains(allowed, *value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, *value, allowed)}
}

// Messages converts the messages of a validation function of apimachinery to errors.
func Messages(found []string, value any, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, message := range found {
		errs = append(errs, field.Invalid(path, value, message))
	}
	return errs
}

// Unique returns an error for each item of a list with a duplicate key. The errors are at the field with the given name,
// or at the items themselves if the name is empty. Empty keys are ignored.
func Unique[T any](items []T, path *field.Path, name string, key func(T) string) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, item := range items {
		value := key(item)
		if value != "" && seen[value] {
			at := path.Index(i)
			if name != "" {
				at = at.Child(name)
			}
			errs = append(errs, field.Duplicate(at, value))
		}
		seen[value] = true
	}
	return errs
}

// UniqueValues returns an error for each duplicate value of a list.
func UniqueValues[T ~string](values []T, path *field.Path) field.ErrorList {
	return Unique(values, path, "", func(value T) string { return string(value) })
}

// Immutable returns an error if a value differs from the old one.
func Immutable(value, old any, path *field.Path) field.ErrorList {
	return apivalidation.ValidateImmutableField(value, old, path)
}

// Selector returns an error if a label selector is invalid.
func Selector(value *metav1.LabelSelector, path *field.Path) field.ErrorList {
	if value == nil {
		return nil
	}
	if _, err := metav1.LabelSelectorAsSelector(value); err != nil {
		return field.ErrorList{field.Invalid(path, value, err.Error())}
	}
	return nil
}

// ObjectName returns an error if a value is not a valid name of an object.
func ObjectName(name string, path *field.Path) field.ErrorList {
	if errs := Required(name, path); errs != nil {
		return errs
	}
	return Messages(validation.IsDNS1123Subdomain(name), name, path)
}

// NamespaceName returns an error if a value is not a valid name of a namespace.
func NamespaceName(name string, path *field.Path) field.ErrorList {
	if errs := Required(name, path); errs != nil {
		return errs
	}
	return Messages(validation.IsDNS1123Label(name), name, path)
}

// Quotas returns an error for each reference to a Quota without a name or with a wrong namespace.
func Quotas(refs []corev1.ObjectReference, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, ref := range refs {
		errs = append(errs, ObjectName(ref.Name, path.Index(i).Child("name"))...)
		errs = append(errs, NamespaceName(ref.Namespace, path.Index(i).Child("namespace"))...)
	}
	return errs
}
