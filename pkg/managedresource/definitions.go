package managedresource

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-k8s/trellis/pkg/object"
)

// heldBack is the reason why objects of a kind cannot be applied yet.
type heldBack struct {
	err error
	// again is the delay before the next attempt if there is no event.
	again time.Duration
}

// newKinds are the kinds that CustomResourceDefinitions of a ManagedResource define and whose objects have not been
// applied yet.
type newKinds map[schema.GroupKind]newKind

type newKind struct {
	versions []schema.GroupVersionKind
	// imminent is set if the kind is expected to be served shortly.
	imminent bool
}

// add adds the kinds of the applied CustomResourceDefinitions. The kinds of those that could not be applied are held
// back.
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

// becomesServed reports whether the kinds of a CustomResourceDefinition are expected to be served shortly: it was just
// written, or it is established.
func becomesServed(change change) bool {
	written := change.action == actionCreate || change.action == actionApply && !change.unchanged
	return written || change.observation.Examined && change.observation.Health == nil
}

// awaitKinds waits until the API server serves the newly defined kinds of manifests, and holds back those that it does
// not serve in time. Other objects are not affected.
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
		w.held[gk] = heldBack{err, watchedInterval} // an event reports that the definition is established
	}
	for gk := range w.held {
		if w.kinds.fresh[gk] {
			w.kinds.late[gk] = true
			delete(w.kinds.fresh, gk) // reading its objects reports the error
		}
	}
}

// freshKinds are kinds that were just defined, so that watches do not show their objects yet.
type freshKinds struct {
	// fresh are the kinds whose definition was created in this pass, or was created in the last one and not served by its
	// end.
	fresh map[schema.GroupKind]bool
	// late are the fresh kinds that the API server does not serve yet.
	late map[schema.GroupKind]bool
}

// add adds the kinds whose definition was just created. They have no objects, so no reads are necessary. The watches of
// a new kind take a second to start, because the API server opens its storage at the first request and makes clients
// wait for it.
func (k freshKinds) add(changes []change) {
	for _, change := range changes {
		if change.action == actionCreate && change.err == nil {
			for _, gvk := range change.manifest.Defines {
				k.fresh[gvk.GroupKind()] = true
			}
		}
	}
}
