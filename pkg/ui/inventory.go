package ui

import (
	"unique"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// entry is what is kept of an entry of an inventory. Of 10,000 entries, few kinds and namespaces are different ones.
type entry struct {
	api, kind, namespace unique.Handle[string]
	name, digest         string
}

// entriesOf returns the entries of a ManagedResource, in their order.
func entriesOf(mr *resourcesv1alpha1.ManagedResource) []entry {
	entries := make([]entry, 0, len(mr.Status.Resources))
	for _, each := range mr.Status.Resources {
		entries = append(entries, entry{unique.Make(each.APIVersion), unique.Make(each.Kind), unique.Make(each.Namespace), each.Name, each.Digest})
	}
	return entries
}

// title names an object for people.
func (e entry) title() string {
	if e.namespace.Value() == "" {
		return e.kind.Value() + " " + e.name
	}
	return e.kind.Value() + " " + e.namespace.Value() + "/" + e.name
}

// Inventory is the tree of a ManagedResource as far as it is known without reading objects: how they are is not, nor what they own.
type Inventory struct {
	Nodes []Node `json:"nodes"`
	More  int    `json:"more,omitempty"`
}

func inventoryOf(entries []entry) Inventory {
	shown := entries[:min(len(entries), mostNodes)]
	nodes := make([]Node, 0, len(shown))
	for _, each := range shown {
		nodes = append(nodes, Node{Level: 1, API: each.api.Value(), Kind: each.kind.Value(), Namespace: each.namespace.Value(), Name: each.name})
	}
	return Inventory{Nodes: nodes, More: len(entries) - len(shown)}
}
