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
func (w *waves) awaitKinds(ctx context.Context, manifests []object.Manifest) {
	var imminent, others []schema.GroupVersionKind
	for _, manifest := range manifests {
		kind := w.defined[manifest.GroupKind()]
		delete(w.defined, manifest.GroupKind())
		if kind.imminent {
			imminent = append(imminent, kind.versions...)
		} else {
			others = append(others, kind.versions...)
		}
	}
	for gk, err := range w.Engine.AwaitServed(ctx, imminent) {
		w.held[gk] = heldBack{err, pendingInterval}
	}
	for gk, err := range w.Engine.Unserved(others) {
		w.held[gk] = heldBack{err, watchedInterval} // that the definition is established is an event
	}
	for gk := range w.held {
		if w.kinds.fresh[gk] {
			w.kinds.late[gk] = true
			delete(w.kinds.fresh, gk) // what is wrong with it is found when its objects are read
		}
	}
}

// freshKinds are kinds that have just been defined, so that watches show no objects of them yet.
type freshKinds struct {
	// fresh are those whose definition was created in this pass, or in the last one without being served by its end.
	fresh map[schema.GroupKind]bool
	// late are fresh kinds that the API server does not serve yet.
	late map[schema.GroupKind]bool
}

// add adds the kinds whose definition was just created: they have no objects, so these need not be read. The watches of such a kind take a
// second, as the API server opens its storage at the first request, and makes clients wait for it.
func (k freshKinds) add(changes []change) {
	for _, change := range changes {
		if change.action == actionCreate && change.err == nil {
			for _, gvk := range change.manifest.Defines {
				k.fresh[gvk.GroupKind()] = true
			}
		}
	}
}
