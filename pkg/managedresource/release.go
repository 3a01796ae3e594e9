package managedresource

import (
	"context"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// release lets go of the recorded objects that ask for it (mode Ignore): if they are still ours, our marks are taken off
// them.
func (p *pass) release(ctx context.Context) {
	var due []object.Ref
	for _, ref := range p.released {
		if _, recorded := p.recorded[ref.Key()]; recorded {
			due = append(due, ref)
		}
	}
	if !p.gate.open() {
		for _, ref := range due {
			p.changes = append(p.changes, change{Ref: ref, action: actionHold, reason: p.gate.why()})
		}
		return
	}
	states := p.Live.Confirm(ctx, due)
	for _, ref := range due {
		p.changes = append(p.changes, p.releaseOne(ctx, ref, states[ref.Key()]))
	}
}

func (p *pass) releaseOne(ctx context.Context, ref object.Ref, state live.State) change {
	result := change{Ref: ref, action: actionRelease, reason: "its mode is Ignore", observation: state.Observation}
	switch state.Presence {
	case live.Absent:
		result.action, result.reason = actionForget, "it is gone"
	case live.Present:
		if owner, ok := resourcesv1alpha1.ParseOrigin(state.Observation.Origin); ok && owner.Owner == p.self.Owner {
			if result.err = p.engine.Release(ctx, ref, p.self.Owner); result.err == nil {
				p.Live.NoteGone(ref, state.Observation.UID) // it lost the label
			}
		}
	default:
		result.err = state.Err
	}
	result.releasing = result.err != nil
	return result
}
