package live

import (
	"github.com/trellis-k8s/trellis/pkg/health"
	"github.com/trellis-k8s/trellis/pkg/message"
	"github.com/trellis-k8s/trellis/pkg/object"
)

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
