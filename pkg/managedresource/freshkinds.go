package managedresource

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// recordFreshKinds remembers the kinds whose definition was just created: there is no object of them, which need not be asked for. The watches
// of such a kind take a second, as the API server opens its storage when it is first asked for, and has clients wait for that long.
func (p *pass) recordFreshKinds(changes []change) {
	for _, change := range changes {
		if change.action == actionCreate && change.err == nil {
			for _, gvk := range change.manifest.Defines {
				p.freshKinds[gvk.GroupKind()] = true
			}
		}
	}
}

// readWanted returns the states of wanted objects. One of a fresh kind that is there all the same is noticed when it is applied.
func (p *pass) readWanted(ctx context.Context, manifests []object.Manifest, held map[schema.GroupKind]heldBack) map[object.Key]live.State {
	for gk := range held {
		if p.freshKinds[gk] {
			p.lateKinds[gk] = true
			delete(p.freshKinds, gk) // what is wrong with it is found when its objects are read
		}
	}
	known := make([]object.Ref, 0, len(manifests))
	for _, ref := range refsOf(manifests) {
		if !p.freshKinds[ref.GroupKind()] {
			known = append(known, ref)
		}
	}
	states := p.Live.Read(ctx, known)
	for _, ref := range refsOf(manifests) {
		if p.freshKinds[ref.GroupKind()] {
			states[ref.Key()] = live.State{Presence: live.Absent}
		}
	}
	return states
}

// notShownYet reports whether an object is of a kind that is so new that its watch shows nothing. It is not waited for: the health controller
// tells how the object is.
func (p *pass) notShownYet(ref object.Ref) bool {
	return p.freshKinds[ref.GroupKind()] && !p.Live.Shows(ref.GroupKind())
}

// addFresh adds the states of objects whose watch shows nothing yet, as they were applied.
func (p *pass) addFresh(states map[object.Key]live.State) {
	for _, change := range p.changes {
		if _, known := states[change.Key()]; known || change.manifest == nil || !p.freshKinds[change.GroupKind()] {
			continue
		}
		states[change.Key()] = live.State{Presence: live.Absent}
		if change.err == nil {
			states[change.Key()] = live.State{Presence: live.Present, Observation: change.observation}
		}
	}
}
