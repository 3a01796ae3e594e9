package v1alpha1

import (
	"slices"
	"strings"
)

// FinalizerOf returns the finalizer of a resource-manager with the given class (as in gardener-resource-manager, where the
// default class and the one for all classes share one).
func FinalizerOf(class string) string {
	switch class {
	case "", DefaultClass, AllClasses:
		return Finalizer
	}
	return Finalizer + "-" + class
}

// HasClass reports whether a resource-manager with the given class is responsible for a ManagedResource.
func HasClass(mr *ManagedResource, class string) bool {
	wanted := DefaultClass
	if mr.Spec.Class != nil && *mr.Spec.Class != "" {
		wanted = *mr.Spec.Class
	}
	return class == AllClasses || class == wanted
}

// HeldByOther reports whether the resource-manager of another class than the given one has not finished its clean-up of a
// ManagedResource.
func HeldByOther(mr *ManagedResource, class string) bool {
	return slices.ContainsFunc(mr.Finalizers, func(finalizer string) bool {
		return strings.HasPrefix(finalizer, Finalizer) && finalizer != FinalizerOf(class)
	})
}
