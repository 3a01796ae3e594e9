package ui

import (
	"unique"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// entry is the part of an inventory entry that is kept. Strings that many of the entries share are interned.
type entry struct {
	api, kind, namespace unique.Handle[string]
	name, digest         string
}

// entriesOf returns the entries of a ManagedResource, in their order.
func entriesOf(mr *resourcesv1alpha1.ManagedResource) []entry {
	entries := make([]entry, 0, len(mr.Status.Resources))
	for _, each := range mr.Status.Resources {
		entries = append(entries, entry{
			unique.Make(each.APIVersion), unique.Make(each.Kind), unique.Make(each.Namespace), each.Name, each.Digest,
		})
	}
	return entries
}

// title returns the kind and name of an object for messages.
func (e entry) title() string {
	if e.namespace.Value() == "" {
		return e.kind.Value() + " " + e.name
	}
	return e.kind.Value() + " " + e.namespace.Value() + "/" + e.name
}

// Inventory is the tree of a ManagedResource without data that must be read: health and owned objects.
type Inventory struct {
	Nodes []Node `json:"nodes"`
	More  int    `json:"more,omitempty"`
}

func inventoryOf(entries []entry) Inventory {
	shown := entries[:min(len(entries), maxNodes)]
	nodes := make([]Node, 0, len(shown))
	for _, each := range shown {
		nodes = append(nodes, Node{
			Level: 1, API: each.api.Value(), Kind: each.kind.Value(), Namespace: each.namespace.Value(), Name: each.name,
		})
	}
	return Inventory{Nodes: nodes, More: len(entries) - len(shown)}
}
