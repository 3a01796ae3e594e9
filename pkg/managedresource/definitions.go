package managedresource

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-k8s/trellis/pkg/object"
)

// heldBack says why objects of a kind cannot be applied yet.
type heldBack struct {
	err error
	// again is how soon they are tried again without an event.
	again time.Duration
}

// newKinds are the kinds that CustomResourceDefinitions of a ManagedResource define, until an object of them is applied.
type newKinds map[schema.GroupKind]newKind

type newKind struct {
	versions []schema.GroupVersionKind
	// imminent is set if the kind is expected to be served within a moment.
	imminent bool
}

// add takes in what became of CustomResourceDefinitions. The kinds of those that could not be applied are held back.
func (d newKinds) add(changes []change, held map[schema.GroupKind]heldBack) {
	for _, change := range changes {
		if change.manifest == nil || change.action == actionHold {
			continue
		}
		for _, gvk := range change.manifest.Defines {
			if change.err != nil {
				held[gvk.GroupKind()] = heldBack{change.err, pendingInterval}
				continue
			}
			kind := d[gvk.GroupKind()]
			kind.versions, kind.imminent = append(kind.versions, gvk), becomesServed(change)
			d[gvk.GroupKind()] = kind
		}
	}
}

// becomesServed reports whether the kinds of a CustomResourceDefinition are expected to be served within a moment: it was written just now,
// or it is established.
func becomesServed(change change) bool {
	written := change.action == actionCreate || change.action == actionApply && !change.unchanged
	return written || change.observation.Examined && change.observation.Health == nil
}

// awaitKinds waits for the kinds of manifests that have just been defined, and holds back those that are not served. What does not depend
// on them was applied before, or is applied all the same.
func (p *pass) awaitKinds(ctx context.Context, defined newKinds, manifests []object.Manifest, held map[schema.GroupKind]heldBack) {
	var imminent, others []schema.GroupVersionKind
	for _, manifest := range manifests {
		kind := defined[manifest.GroupKind()]
		delete(defined, manifest.GroupKind())
		if kind.imminent {
			imminent = append(imminent, kind.versions...)
		} else {
			others = append(others, kind.versions...)
		}
	}
	for gk, err := range p.Engine.AwaitServed(ctx, imminent) {
		held[gk] = heldBack{err, pendingInterval}
	}
	for gk, err := range p.Engine.Unserved(others) {
		held[gk] = heldBack{err, watchedInterval} // that the definition is established is an event
	}
}
