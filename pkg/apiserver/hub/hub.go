// Package hub lets an API server work with one set of Go types for a group. API machinery converts every version of a
// kind to and from an internal one; here the internal version is the storage version's own Go type, so that nothing has
// to be converted as long as a kind has one version.
package hub

import (
	"fmt"
	"path"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Register makes the types that a scheme knows under a version the internal types of its group, too. Kinds that are
// named in except have their internal type from another version of the group. It returns an error if a type is not a
// pointer to an API object.
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

// isMeta reports whether a type is one of those that every version of every group has, such as ListOptions. They have
// an internal type of their own, or need none.
func isMeta(goType reflect.Type) bool {
	return path.Base(path.Dir(goType.PkgPath())) == "meta"
}
