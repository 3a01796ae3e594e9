package v1alpha1

import (
	"slices"
	"strings"
)

// FinalizerOf returns the finalizer of a resource-manager with the given class. As in gardener-resource-manager, the
// default class and AllClasses use the same finalizer.
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

// HeldByOther reports whether a ManagedResource has the finalizer of a resource-manager of another class, which has not
// finished its clean-up.
func HeldByOther(mr *ManagedResource, class string) bool {
	return slices.ContainsFunc(mr.Finalizers, func(finalizer string) bool {
		return strings.HasPrefix(finalizer, Finalizer) && finalizer != FinalizerOf(class)
	})
}
