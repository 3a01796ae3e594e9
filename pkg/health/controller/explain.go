package controller

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/log"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/health"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/object"
	"github.com/trellis-k8s/trellis/pkg/warnings"
)

// maxExplained is the maximum number of unhealthy objects of one ManagedResource with Events in the condition. There is no
// room for more.
const maxExplained = 3

// eventsAfter are the intervals between reads of the Events of an unhealthy object. Some Events come late, but a
// lasting failure must not cause requests forever.
var eventsAfter = []time.Duration{0, 10 * time.Second, time.Minute, 5 * time.Minute}

// explanation is the summary of an object's Events. reads is the number of reads, readAt the time of the last one.
type explanation struct {
	text   string
	reads  int
	readAt time.Time
}

// due reports whether to read the Events now, and otherwise how soon; 0 for never.
func (e explanation) due(now time.Time) (bool, time.Duration) {
	if e.reads == len(eventsAfter) {
		return false, 0
	}
	left := e.readAt.Add(eventsAfter[e.reads]).Sub(now)
	return left <= 0, max(left, 0)
}

// explain adds summaries of their Events to unhealthy objects. It returns how soon to read them again; 0 for never.
func (r *Reconciler) explain(
	ctx context.Context, mr *resourcesv1alpha1.ManagedResource, memory *memory, subjects []health.Subject,
) time.Duration {
	return memory.explain(unhealthyAmong(subjects), r.Clock.Now(), func(subject *health.Subject) string {
		return r.warningsOf(ctx, mr, subject)
	})
}

// explain does the same with a function that reads Events. Each object has its own schedule, so an object that becomes
// unhealthy long after another one is explained too.
func (m *memory) explain(unhealthy []*health.Subject, now time.Time, read func(*health.Subject) string) (again time.Duration) {
	explanations := make(map[objectName]explanation, len(unhealthy))
	for _, subject := range unhealthy {
		name := nameOf(subject)
		known := m.explanations[name]
		if due, _ := known.due(now); due {
			known = explanation{text: read(subject), reads: known.reads + 1, readAt: now}
		}
		_, left := known.due(now)
		again = soonest(again, left)
		explanations[name], subject.Notes = known, known.text
	}
	m.explanations = explanations
	return again
}

// unhealthyAmong returns the first unhealthy subjects, at most maxExplained.
func unhealthyAmong(subjects []health.Subject) []*health.Subject {
	var unhealthy []*health.Subject
	for i := range subjects {
		subject := &subjects[i]
		isUnhealthy := subject.Verdict.Unhealthy != "" && !subject.Verdict.Unobserved && !subject.Exempt && !subject.Pending
		if isUnhealthy && len(unhealthy) < maxExplained {
			unhealthy = append(unhealthy, subject)
		}
	}
	return unhealthy
}

func nameOf(subject *health.Subject) objectName {
	return objectName{subject.Group, subject.Kind, subject.Namespace, subject.Name}
}

// warningsOf returns a summary of an object's Events. It ignores errors, because reading Events may be forbidden.
func (r *Reconciler) warningsOf(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, subject *health.Subject) string {
	ref := refOf(mr, subject)
	state := r.Live.Read(ctx, []object.Ref{ref})[ref.Key()]
	if state.Presence != live.Present {
		return ""
	}
	events, err := r.Objects.RelatedWarnings(ctx, ref, state.Observation.UID)
	if err != nil {
		log.FromContext(ctx).V(1).Info("Could not read the Events of an unhealthy object", "object", ref.String(), "error", err.Error())
	}
	// Events from before the object was created, or from long ago, explain nothing.
	recent := slices.DeleteFunc(events, func(event corev1.Event) bool {
		return r.Clock.Since(warnings.LastSeen(event)) > time.Hour
	})
	return strings.TrimLeft(warnings.Describe(warnings.Latest(recent), state.Observation.UID, r.Clock.Now()), "\n")
}

func refOf(mr *resourcesv1alpha1.ManagedResource, subject *health.Subject) object.Ref {
	ref := object.Ref{
		GroupVersionKind: schema.GroupVersionKind{Group: subject.Group, Kind: subject.Kind}, Namespace: subject.Namespace, Name: subject.Name,
	}
	for _, entry := range mr.Status.Resources {
		if gvk := schema.FromAPIVersionAndKind(entry.APIVersion, entry.Kind); gvk.GroupKind() == ref.GroupKind() {
			ref.Version = gvk.Version
			break
		}
	}
	return ref
}
