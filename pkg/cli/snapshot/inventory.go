package snapshot

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// RefOf returns the object of an inventory entry.
func RefOf(entry resourcesv1alpha1.ObjectReference) object.Ref {
	return object.Ref{
		GroupVersionKind: schema.FromAPIVersionAndKind(entry.APIVersion, entry.Kind), Namespace: entry.Namespace, Name: entry.Name,
	}
}

// RefsOf returns the objects of an inventory.
func RefsOf(mr *resourcesv1alpha1.ManagedResource) []object.Ref {
	refs := make([]object.Ref, 0, len(mr.Status.Resources))
	for _, entry := range mr.Status.Resources {
		refs = append(refs, RefOf(entry))
	}
	return refs
}

// Inventories reads the objects of ManagedResources, each in the order of the inventory. It warns on standard error
// about objects
// that the user may not read, and about a cluster that seems to be the wrong one.
func Inventories(ctx context.Context, c *console.Console, items []resourcesv1alpha1.ManagedResource, below, all bool) ([][]*Object, error) {
	progress := c.Begin("Reading objects")
	defer progress.End()
	objects := make([][]*Object, len(items))
	for _, group := range byTarget(c, items) {
		switch {
		case errors.Is(group.err, console.ErrNoTarget):
			c.Warn("%v", group.err)
			group.fill(objects, unread(group.items, group.err))
		case group.err != nil:
			return nil, group.err
		default:
			group.fill(objects, read(ctx, c, progress, group, below, all))
		}
	}
	return objects, ctx.Err()
}

// group contains ManagedResources whose objects are in the same cluster, with their indexes. err is the reason why
// the cluster is not
// read.
type group struct {
	target *console.Target
	err    error
	items  []resourcesv1alpha1.ManagedResource
	places []int
}

func (g *group) fill(objects, of [][]*Object) {
	for i, place := range g.places {
		objects[place] = of[i]
	}
}

// byTarget groups ManagedResources by the cluster of their objects.
func byTarget(c *console.Console, items []resourcesv1alpha1.ManagedResource) []*group {
	var groups []*group
	for i := range items {
		target, err := c.TargetOf(&items[i])
		at := slices.IndexFunc(groups, func(g *group) bool { return g.target == target })
		if at < 0 {
			at = len(groups)
			groups = append(groups, &group{target: target, err: err})
		}
		groups[at].items, groups[at].places = append(groups[at].items, items[i]), append(groups[at].places, i)
	}
	return groups
}

// read reads the objects of ManagedResources from one cluster.
func read(ctx context.Context, c *console.Console, progress *console.Progress, group *group, below, all bool) [][]*Object {
	items := group.items
	reader := NewReader(group.target, items, func(count int) { progress.Say("Reading objects (%d)", count) })
	var refs []object.Ref
	for i := range items {
		refs = append(refs, RefsOf(&items[i])...)
	}
	found := reader.Read(ctx, refs)
	objects := make([][]*Object, len(items))
	var roots []*Object
	for i := range items {
		for n, ref := range RefsOf(&items[i]) {
			object := found[ref.Key()]
			if items[i].Status.Resources[n].Completed && object.Presence == live.Absent {
				object.Finished, object.Detail = true, "it has finished, and was deleted after its TTL"
			}
			objects[i] = append(objects[i], object)
		}
		roots = append(roots, objects[i]...)
	}
	if below {
		reader.Below(ctx, roots, all)
	}
	if unseen := reader.Unseen(); len(unseen) > 0 {
		c.Warn("Not shown, because you may not read them: %s.", strings.Join(unseen, "; "))
	}
	if slices.ContainsFunc(items, isApplied) {
		warnOfWrongCluster(c, group.target, roots)
	}
	return objects
}

// unread returns objects with only their names.
func unread(items []resourcesv1alpha1.ManagedResource, why error) [][]*Object {
	objects := make([][]*Object, len(items))
	for i := range items {
		for _, ref := range RefsOf(&items[i]) {
			objects[i] = append(objects[i], &Object{Ref: ref, Err: why})
		}
	}
	return objects
}

// isApplied reports whether the conditions show that all objects are applied.
func isApplied(mr resourcesv1alpha1.ManagedResource) bool {
	return resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied).Status == resourcesv1alpha1.ConditionTrue
}

// warnOfWrongCluster warns if none of the objects exists, which usually means that they are in another cluster.
func warnOfWrongCluster(c *console.Console, target *console.Target, objects []*Object) {
	present := slices.ContainsFunc(objects, func(o *Object) bool { return o.Presence == live.Present || o.Presence == live.Unknown || o.Finished })
	if len(objects) == 0 || present {
		return
	}
	which := "which --target-kubeconfig or --target-context specifies"
	if target.IsSource {
		which = "which is also the cluster with the ManagedResources"
	}
	c.Warn("None of the %d objects of the inventories exists in the cluster %s, %s. If they are applied to another cluster, "+
		"specify it with --target-kubeconfig or --target-context.", len(objects), target.Host, which)
}

// BySeverity returns objects sorted by severity, the most severe first. It keeps the order of objects of the same
// severity.
func BySeverity(objects []*Object) []*Object {
	return slices.SortedStableFunc(slices.Values(objects), func(a, b *Object) int {
		return cmp.Compare(slices.Index(Healths, a.Health()), slices.Index(Healths, b.Health()))
	})
}
