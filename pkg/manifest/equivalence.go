package manifest

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// Equivalences maps each kind to the representative of its set. Objects with the same name whose kinds are in one set
// are the same object.
type Equivalences map[schema.GroupKind]schema.GroupKind

// builtInEquivalences are kinds that Kubernetes moved from one API group to another one.
func builtInEquivalences() [][]resourcesv1alpha1.GroupKind {
	var sets [][]resourcesv1alpha1.GroupKind
	for kind, group := range map[string]string{
		"Deployment": "apps", "DaemonSet": "apps", "ReplicaSet": "apps", "StatefulSet": "apps",
		"Ingress": "networking.k8s.io", "NetworkPolicy": "networking.k8s.io",
	} {
		sets = append(sets, []resourcesv1alpha1.GroupKind{{Group: "extensions", Kind: kind}, {Group: group, Kind: kind}})
	}
	return sets
}

// NewEquivalences merges the built-in sets with additional ones. Sets with a common member are merged.
func NewEquivalences(further [][]resourcesv1alpha1.GroupKind) Equivalences {
	result := Equivalences{}
	for _, set := range append(builtInEquivalences(), further...) {
		for _, member := range set {
			result.join(toSchema(set[0]), toSchema(member))
		}
	}
	return result
}

func toSchema(gk resourcesv1alpha1.GroupKind) schema.GroupKind {
	return schema.GroupKind{Group: gk.Group, Kind: gk.Kind}
}

func (e Equivalences) join(a, b schema.GroupKind) {
	to, from := e.representative(a), e.representative(b)
	e[a], e[b] = to, to
	for member, representative := range e {
		if representative == from {
			e[member] = to
		}
	}
}

func (e Equivalences) representative(gk schema.GroupKind) schema.GroupKind {
	if representative, ok := e[gk]; ok {
		return representative
	}
	return gk
}

// Identity returns the key that is common to all keys of one object.
func (e Equivalences) Identity(key object.Key) object.Key {
	gk := e.representative(key.GroupKind())
	key.Group, key.Kind = gk.Group, gk.Kind
	return key
}
