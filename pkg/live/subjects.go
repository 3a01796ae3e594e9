package live

import (
	"context"
	"time"

	"github.com/trellis-k8s/trellis/pkg/health"
	"github.com/trellis-k8s/trellis/pkg/message"
	"github.com/trellis-k8s/trellis/pkg/object"
)

const (
	// examinedWithin is how long is waited for the watches to show how objects are that were just written; they take milliseconds.
	examinedWithin = time.Second
	// rolledOutWithin is how long is waited for the controllers of objects to roll out what was just written. Where no Pod has to
	// be replaced they take milliseconds, and then it need not be told that it is under way.
	rolledOutWithin = 100 * time.Millisecond
	// examinedInterval is how often is looked whether they do.
	examinedInterval = 5 * time.Millisecond
)

// ReadExamined returns the state of objects like Read. It waits a moment for the watches to show how those are that were just
// written, as the answer to a write tells their metadata alone, and a shorter one for their controllers.
func (v *View) ReadExamined(ctx context.Context, refs []object.Ref) map[object.Key]State {
	states := v.Read(ctx, refs)
	started := v.Clock.Now()
	pending := unexamined(refs, states, true)
	enough, cancel := context.WithTimeout(ctx, examinedWithin)
	defer cancel()
	for len(pending) > 0 {
		select {
		case <-enough.Done():
			return states
		case <-v.Clock.After(examinedInterval):
		}
		for key, state := range v.Read(ctx, pending) {
			states[key] = state
		}
		pending = unexamined(pending, states, v.Clock.Since(started) < rolledOutWithin)
	}
	return states
}

// unexamined returns the objects that are there, but of which it is not known how they are, and those that are being rolled out,
// if these are to be waited for.
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

// Subjects returns what the states of objects say of their health, in the order of refs.
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
				subject.MissingDetail = message.Stable(state.Err.Error())
			}
		case Present:
			subject.Exempt = state.Observation.Exempt
			subject.Pending = !state.Observation.Examined
			subject.Verdict = state.Observation.verdict()
		default:
			subject.Unknown = "its state is not known"
			if state.Err != nil {
				subject.Unknown = message.Stable(state.Err.Error())
			}
		}
		subjects = append(subjects, subject)
	}
	return subjects
}
