// Package hub makes an API server use one set of Go types for a group. API machinery converts every version of a kind to
// and from an internal version. Here, the internal version has the same Go type as the storage version, so that a kind
// with only one version needs no conversion.
package hub

import (
	"fmt"
	"path"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Register registers the types of a version as the internal types of its group, too. The internal type of kinds in except
// comes from another version of the group. Register returns an error if a type is not a pointer to an API object.
func Register(scheme *runtime.Scheme, version schema.GroupVersion, except ...string) error {
	internal := schema.GroupVersion{Group: version.Group, Version: runtime.APIVersionInternal}
	left := map[string]bool{}
	for _, kind := range except {
		left[kind] = true
	}
	for kind, goType := range scheme.KnownTypes(version) {
		if left[kind] || isMeta(goType) {
			continue
		}
		object, ok := reflect.New(goType).Interface().(runtime.Object)
		if !ok {
			return fmt.Errorf("register %s of %s as internal type: %s is not an API object", kind, version, goType)
		}
		scheme.AddKnownTypeWithName(internal.WithKind(kind), object)
	}
	return nil
}

// isMeta reports whether a type belongs to every version of every group, such as ListOptions. Such types have their own
// internal type, or need none.
func isMeta(goType reflect.Type) bool {
	return path.Base(path.Dir(goType.PkgPath())) == "meta"
}
