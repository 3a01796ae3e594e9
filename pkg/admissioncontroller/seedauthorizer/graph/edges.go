package graph

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// edges collects the edges that end in one vertex.
type edges struct {
	to  Vertex
	all []Edge
}

// add adds an edge from an object. It adds none if the name is empty.
func (e *edges) add(access Access, kind Kind, namespace, name string) {
	if name != "" {
		e.link(access, Vertex{kind, namespace, name}, e.to)
	}
}

// link adds an edge between two objects, unless it is already there.
func (e *edges) link(access Access, from, to Vertex) {
	if edge := (Edge{from, to, access}); !slices.Contains(e.all, edge) {
		e.all = append(e.all, edge)
	}
}

// refer adds an edge from an object that another one names by its kind. Other kinds cannot be named.
func (e *edges) refer(access Access, kind, namespace, name string) {
	switch named := Kind(kind); named {
	case Secret, ConfigMap, InternalSecret, WorkloadIdentity:
		e.add(access, named, namespace, name)
	}
}

// credentials adds an edge from credentials. By default, they are a Secret in the namespace garden.
func (e *edges) credentials(access Access, ref *corev1.ObjectReference) {
	if ref != nil {
		e.refer(access, cmp.Or(ref.Kind, string(Secret)), cmp.Or(ref.Namespace, constants.GardenNamespace), ref.Name)
	}
}

// seeds adds edges to Seeds, which own the object. During a migration there are two.
func (e *edges) seeds(names ...*string) {
	for _, name := range names {
		if seed := ptr.Deref(name, ""); seed != "" {
			e.link(Own, e.to, SeedVertex(seed))
		}
	}
}

// shoot adds an edge to the self-hosted Shoot that an object belongs to.
func (e *edges) shoot(access Access, ref *corev1.ObjectReference) {
	if ref != nil && ref.Name != "" {
		e.link(access, e.to, ShootVertex(ref.Namespace, ref.Name))
	}
}

// SeedVertex returns the vertex of a Seed.
func SeedVertex(name string) Vertex { return Vertex{Kind: Seed, Name: name} }

// ShootVertex returns the vertex of a Shoot.
func ShootVertex(namespace, name string) Vertex { return Vertex{Shoot, namespace, name} }
