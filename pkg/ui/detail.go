package ui

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/events"
	"github.com/trellis-k8s/trellis/pkg/cli/explain"
	"github.com/trellis-k8s/trellis/pkg/cli/preview"
	"github.com/trellis-k8s/trellis/pkg/cli/snapshot"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
	"github.com/trellis-k8s/trellis/pkg/live"
)

const (
	// maxNodes is the maximum number of nodes of a tree in a response.
	maxNodes = 50_000
	// maxEvents is the maximum number of Events in a response.
	maxEvents = 1000
)

// Sync reports whether an object is unchanged since it was applied.
type Sync string

// The words.
const (
	// Synced means that it is unchanged.
	Synced Sync = "Synced"
	// Drifted means that another writer changed it after it was applied.
	Drifted Sync = "Changed"
	// NotApplied means that it was not applied yet, or could not be.
	NotApplied Sync = "Not applied"
	// NotSeen means that this is unknown.
	NotSeen Sync = "Unseen"
)

// syncOf returns the Sync of an object of an inventory.
func syncOf(object *snapshot.Object, entry resourcesv1alpha1.ObjectReference) Sync {
	switch {
	case object.Presence == live.Unknown:
		return NotSeen
	case object.Presence != live.Present || entry.Digest == "":
		return NotApplied
	case snapshot.Changed(object, entry):
		return Drifted
	}
	return Synced
}

// Node is an object in a tree. Trees are sent as lists: owned objects follow their owner, one level deeper.
type Node struct {
	Level     int    `json:"level"`
	API       string `json:"api"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Health is empty while it is unknown.
	Health snapshot.Health `json:"health,omitempty"`
	// Sync is empty for objects that are in no inventory.
	Sync    Sync   `json:"sync,omitempty"`
	Created int64  `json:"created,omitempty"`
	Detail  string `json:"detail,omitempty"`
	Why     string `json:"why,omitempty"`
}

// nodesOf returns the tree of a ManagedResource whose inventory was read, and the number of omitted objects.
func nodesOf(objects []*snapshot.Object, entries []resourcesv1alpha1.ObjectReference) (nodes []Node, more int) {
	var add func(object *snapshot.Object, level int, sync Sync)
	add = func(object *snapshot.Object, level int, sync Sync) {
		if len(nodes) >= maxNodes {
			more++
		} else {
			nodes = append(nodes, Node{
				Level: level, API: object.GroupVersion().String(), Kind: object.Kind, Namespace: object.Namespace, Name: object.Name,
				Health: object.Health(), Sync: sync, Created: seconds(object.Created()),
				Detail: shorten(object.Detail), Why: shorten(object.Why()),
			})
		}
		for _, child := range object.Children {
			add(child, level+1, "")
		}
	}
	nodes = make([]Node, 0, len(objects))
	for i, object := range objects {
		add(object, 1, syncOf(object, entries[i]))
	}
	return nodes, more
}

// Summary contains the specification and status of a ManagedResource.
type Summary struct {
	Row
	Reason     string      `json:"reason,omitempty"`
	Text       string      `json:"text,omitempty"`
	Conditions []Condition `json:"conditions"`
	Secrets    []string    `json:"secrets,omitempty"`
	// DependsOn are its dependencies.
	DependsOn []Dependency `json:"dependsOn,omitempty"`
	// DeletedAfter are the names in deleteAfter.
	DeletedAfter []string `json:"deletedAfter,omitempty"`
	Generation   int64    `json:"generation"`
	Observed     int64    `json:"observed"`
	KeepsObjects bool     `json:"keepsObjects,omitempty"`
}

// Dependency is a ManagedResource that another one waits for. Until and For are empty for the defaults.
type Dependency struct {
	// Name is "<namespace>/<name>".
	Name  string                            `json:"name"`
	Until resourcesv1alpha1.DependencyUntil `json:"until,omitempty"`
	For   resourcesv1alpha1.DependencyFor   `json:"for,omitempty"`
}

func summaryOf(mr *resourcesv1alpha1.ManagedResource) Summary {
	is := state.Of(mr)
	summary := Summary{
		Row: rowOf(mr), Reason: is.Reason, Text: is.Message, Conditions: conditionsOf(mr), Generation: mr.Generation,
		Observed: mr.Status.ObservedGeneration, KeepsObjects: mr.Spec.KeepObjects != nil && *mr.Spec.KeepObjects,
	}
	for _, reference := range mr.Spec.SecretRefs {
		summary.Secrets = append(summary.Secrets, reference.Name)
	}
	for _, dependency := range mr.Spec.DependsOn {
		summary.DependsOn = append(summary.DependsOn, Dependency{
			Name: dependency.NameFrom(mr.Namespace).String(), Until: dependency.Until, For: dependency.For,
		})
	}
	named, _ := mr.DeletedAfter()
	for _, name := range named {
		summary.DeletedAfter = append(summary.DeletedAfter, name.String())
	}
	return summary
}

// part reads one kind of details of a ManagedResource. It is nil if only the summary is requested.
type part func(ctx context.Context, c *console.Console, mr *resourcesv1alpha1.ManagedResource) (any, error)

// partObjects reads the tree of objects.
func partObjects(ctx context.Context, c *console.Console, mr *resourcesv1alpha1.ManagedResource) (any, error) {
	objects, err := snapshot.Inventories(ctx, c, []resourcesv1alpha1.ManagedResource{*mr}, true, false)
	if err != nil {
		return nil, err
	}
	nodes, more := nodesOf(objects[0], mr.Status.Resources)
	return Inventory{Nodes: nodes, More: more}, nil
}

// partWhy explains the state.
func partWhy(ctx context.Context, c *console.Console, mr *resourcesv1alpha1.ManagedResource) (any, error) {
	return explain.Explain(ctx, c, mr, false)
}

// partDiff computes what applying would change.
func partDiff(ctx context.Context, c *console.Console, mr *resourcesv1alpha1.ManagedResource) (any, error) {
	return preview.JSON(ctx, c, mr)
}

// partEvents reads the Events, the latest first.
func partEvents(ctx context.Context, c *console.Console, mr *resourcesv1alpha1.ManagedResource) (any, error) {
	found, err := events.About(ctx, c, mr)
	if err != nil {
		return nil, err
	}
	slices.Reverse(found)
	return found[:min(len(found), maxEvents)], nil
}

// Answer is a response about a ManagedResource.
type Answer struct {
	// Value contains the requested part.
	Summary Summary `json:"summary"`
	Value   any     `json:"value,omitempty"`
	// Notes describe omitted data, such as objects that the viewer may not read.
	Notes []string `json:"notes,omitempty"`
}

// read reads a part of a ManagedResource, and collects notes about omitted data.
func (v *Viewer) read(ctx context.Context, name types.NamespacedName, known string, part part) (*Answer, error) {
	source, err := v.Console.Source()
	if err != nil {
		return nil, err
	}
	mr, err := source.GetManagedResourceSince(ctx, name, known)
	if err != nil {
		return nil, err
	}
	if part == nil {
		return &Answer{Summary: summaryOf(mr)}, nil
	}
	captured, notes := v.Console.Capture()
	value, err := part(ctx, captured, mr)
	if err != nil {
		return nil, err
	}
	return &Answer{Summary: summaryOf(mr), Value: value, Notes: notes.Lines()}, nil
}
