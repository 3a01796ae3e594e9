package live

import (
	"context"
	"time"

	"github.com/trellis-k8s/trellis/pkg/conditiontext"
	"github.com/trellis-k8s/trellis/pkg/health"
	"github.com/trellis-k8s/trellis/pkg/object"
)

const (
	// examinedWithin limits the wait for the watches to report the health of objects that were just written. They take
	// milliseconds.
	examinedWithin = time.Second
	// examinedInterval is the first interval between reads of the watches, and maxInterval the longest one.
	examinedInterval = 5 * time.Millisecond
	maxInterval      = 25 * time.Millisecond
)

// ReadExamined returns the state of objects like Read. It waits a moment for the watches to show the health of objects
// that were just written, because the response to a write has only their metadata. It also waits for their rollout if
// that is likely to finish soon.
func (v *View) ReadExamined(ctx context.Context, refs []object.Ref) map[object.Key]State {
	states := v.Read(ctx, refs)
	started := v.Clock.Now()
	rollout := v.rolloutWait.limit()
	pending := unexamined(refs, states, true)
	enough, cancel := context.WithTimeout(ctx, examinedWithin)
	defer cancel()
	for interval := examinedInterval; len(pending) > 0; interval = min(interval*3/2, maxInterval) {
		select {
		case <-enough.Done():
			return states
		case <-v.Clock.After(interval):
		}
		for key, state := range v.Read(ctx, pending) {
			states[key] = state
		}
		waited := v.Clock.Since(started)
		rolling := unexamined(pending, states, true)
		pending = unexamined(pending, states, waited < rollout)
		if len(pending) == 0 {
			v.rolloutWait.learn(waited, len(rolling) == 0)
		}
	}
	return states
}

// unexamined returns the existing objects whose health is unknown and, if progressing is set, those that are being
// rolled out.
func unexamined(refs []object.Ref, states map[object.Key]State, progressing bool) []object.Ref {
	var pending []object.Ref
	for _, ref := range refs {
		state := states[ref.Key()]
		if state.Presence == Present && (!state.Observation.Examined || progressing && state.Observation.verdict().Progressing != "") {
			pending = append(pending, ref)
		}
	}
	return pending
}

// Subjects returns the subjects of health checks for the states of objects, in the order of refs.
func Subjects(refs []object.Ref, states map[object.Key]State) []health.Subject {
	subjects := make([]health.Subject, 0, len(refs))
	for _, ref := range refs {
		subject := health.Subject{Group: ref.Group, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
		switch state := states[ref.Key()]; state.Presence {
		case Absent:
			subject.Missing = true
		case KindNotServed:
			subject.Missing = true
			if state.Err != nil {
				subject.MissingDetail = conditiontext.Stable(state.Err.Error())
			}
		case Present:
			subject.Exempt = state.Observation.Exempt
			subject.Pending = !state.Observation.Examined
			subject.Verdict = state.Observation.verdict()
		default:
			subject.Unknown = "its state is not known"
			if state.Err != nil {
				subject.Unknown = conditiontext.Stable(state.Err.Error())
			}
		}
		subjects = append(subjects, subject)
	}
	return subjects
}
