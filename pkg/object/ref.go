// Package object identifies objects of any kind and holds their manifests.
package object

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Ref identifies an object in a cluster, together with the API version of its manifest.
type Ref struct {
	schema.GroupVersionKind
	// Namespace is empty for cluster-scoped objects.
	Namespace string
	Name      string
}

// Key is the identity of an object. It does not contain the version, because all versions of a kind represent the same
// object.
type Key struct {
	Group, Kind, Namespace, Name string
}

// Definition is the kind CustomResourceDefinition.
var Definition = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// Key returns the object's identity.
func (r Ref) Key() Key {
	return Key{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// GroupKind returns the object's kind without a version.
func (k Key) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: k.Group, Kind: k.Kind}
}

// Validate returns an error for names and namespaces that would direct a request to another object, kind or collection,
// such as "..".
func (r Ref) Validate() error {
	for _, segment := range []string{r.Name, r.Namespace} {
		if problems := content.IsPathSegmentName(segment); len(problems) > 0 {
			return fmt.Errorf("the %s has an invalid name or namespace %q: it %s", r.Kind, segment, strings.Join(problems, "; "))
		}
	}
	return nil
}

// String returns "<apiVersion>/<kind>/<namespace>/<name>", without the namespace for cluster-scoped objects.
func (r Ref) String() string {
	id := r.GroupVersion().String() + "/" + r.Kind + "/"
	if r.Namespace != "" {
		id += r.Namespace + "/"
	}
	return id + r.Name
}

// String returns "<kind>[.<group>] <namespace>/<name>", without the namespace for cluster-scoped objects.
func (k Key) String() string {
	id := k.GroupKind().String() + " "
	if k.Namespace != "" {
		id += k.Namespace + "/"
	}
	return id + k.Name
}

// Compare orders keys by group, kind, namespace and name.
func (k Key) Compare(other Key) int {
	return cmp.Or(
		cmp.Compare(k.Group, other.Group),
		cmp.Compare(k.Kind, other.Kind),
		cmp.Compare(k.Namespace, other.Namespace),
		cmp.Compare(k.Name, other.Name),
	)
}
