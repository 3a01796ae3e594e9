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

// explained is for how many unhealthy objects of one ManagedResource Events are shown: a condition has no room for more.
const explained = 3

// eventsAfter are the times after which the Events of unhealthy objects are read once more: some come late, and what nobody
// mends must not cost requests for ever.
var eventsAfter = []time.Duration{0, 10 * time.Second, time.Minute, 5 * time.Minute}

// explain adds to unhealthy objects what Events tell of them, and returns how soon they are read again; 0 for never.
func (r *Reconciler) explain(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, memory *memory, subjects []health.Subject) time.Duration {
	unhealthy := unhealthyAmong(subjects)
	if len(unhealthy) == 0 {
		memory.notes, memory.looks = nil, 0
		return 0
	}
	now := r.Clock.Now()
	if memory.looks < len(eventsAfter) && now.Sub(memory.looked) >= eventsAfter[memory.looks] {
		memory.notes, memory.looked = map[objectName]string{}, now
		memory.looks++
		for _, subject := range unhealthy {
			memory.notes[nameOf(subject)] = r.notesOf(ctx, mr, subject)
		}
	}
	for _, subject := range unhealthy {
		subject.Notes = memory.notes[nameOf(subject)]
	}
	if memory.looks == len(eventsAfter) {
		return 0
	}
	return eventsAfter[memory.looks] - now.Sub(memory.looked)
}

// unhealthyAmong returns the first unhealthy ones of the objects.
func unhealthyAmong(subjects []health.Subject) []*health.Subject {
	var unhealthy []*health.Subject
	for i := range subjects {
		subject := &subjects[i]
		if subject.Verdict.Unhealthy != "" && !subject.Verdict.Unobserved && !subject.Exempt && !subject.Pending && len(unhealthy) < explained {
			unhealthy = append(unhealthy, subject)
		}
	}
	return unhealthy
}

func nameOf(subject *health.Subject) objectName {
	return objectName{subject.Group, subject.Kind, subject.Namespace, subject.Name}
}

// notesOf returns what Events tell of an object. That they cannot be read, which may be forbidden, is nobody's concern here.
func (r *Reconciler) notesOf(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, subject *health.Subject) string {
	ref := refOf(mr, subject)
	state := r.Live.Read(ctx, []object.Ref{ref})[ref.Key()]
	if state.Presence != live.Present {
		return ""
	}
	events, err := r.Objects.RelatedWarnings(ctx, ref, state.Observation.UID)
	if err != nil {
		log.FromContext(ctx).V(1).Info("Could not read the Events of an unhealthy object", "object", ref.String(), "error", err.Error())
	}
	// What was reported before the object was created, or long ago, explains nothing.
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
