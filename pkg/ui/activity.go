package ui

import (
	"cmp"
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/warnings"
)

const (
	// activityAge limits the age of the shown drift and fights. An API server keeps Events for this time by default.
	activityAge = time.Hour
	// activityFresh is how long a result is reused for the same viewer.
	activityFresh = 5 * time.Second
	// maxActivities is the maximum number of Events per list request, and of activities in a response.
	maxActivities = 500
	// maxEventNamespaces is the maximum number of namespaces whose Events are read one after the other.
	maxEventNamespaces = 50
)

// activityReasons are the reasons of the resource-manager's Events that report drift and fights
// (docs/observability.md).
var activityReasons = []string{"Contested", "Corrected"}

// Activity is a change by another writer that the resource-manager reverted.
type Activity struct {
	Last      int64  `json:"last"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Reason is Corrected, or Contested if it happens repeatedly.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Count   int32  `json:"count"`
}

// Activities are the drift and fights of the last hour, the latest first.
type Activities struct {
	Items []Activity `json:"items"`
	// Unseen is set if some Events were not read, because of missing permissions or the limit.
	Unseen bool `json:"unseen,omitempty"`
}

// readActivities reads Events with the permissions of a viewer, or returns the last result for the same permissions.
func (s *Server) readActivities(ctx context.Context, v *Viewer) (*Activities, error) {
	kept := &v.Bounds.activity
	kept.Lock()
	defer kept.Unlock()
	now := s.shared.Clock.Now()
	if kept.last != nil && kept.sees == v.Sees.key && now.Sub(kept.at) < activityFresh {
		return kept.last, nil
	}
	namespaces := v.Sees.Names()
	if v.Sees.All() {
		namespaces = []string{""}
	}
	found := &Activities{Items: []Activity{}, Unseen: len(namespaces) == 0}
	if len(namespaces) > maxEventNamespaces {
		namespaces, found.Unseen = namespaces[:maxEventNamespaces], true
	}
	source, err := v.Console.Source()
	if err != nil {
		return nil, err
	}
	for _, namespace := range namespaces {
		for _, reason := range activityReasons {
			list := &corev1.EventList{}
			err := source.List(ctx, list, client.InNamespace(namespace), client.Limit(maxActivities),
				client.MatchingFields{"involvedObject.kind": "ManagedResource", "reason": reason})
			if apierrors.IsForbidden(err) {
				found.Unseen = true
				break
			}
			if err != nil {
				return nil, err
			}
			found.Items = append(found.Items, activitiesOf(list.Items, now)...)
		}
	}
	slices.SortFunc(found.Items, func(a, b Activity) int {
		return cmp.Or(cmp.Compare(b.Last, a.Last), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Message, b.Message))
	})
	found.Items = found.Items[:min(len(found.Items), maxActivities)]
	kept.last, kept.sees, kept.at = found, v.Sees.key, now
	return found, nil
}

// activitiesOf returns the activities in the Events of the last hour.
func activitiesOf(events []corev1.Event, now time.Time) []Activity {
	var activities []Activity
	for _, event := range events {
		last := warnings.LastSeen(event)
		if now.Sub(last) > activityAge {
			continue
		}
		count := max(event.Count, 1)
		if event.Series != nil {
			count = max(count, event.Series.Count)
		}
		activities = append(activities, Activity{
			Last: seconds(last), Namespace: event.InvolvedObject.Namespace, Name: event.InvolvedObject.Name, Reason: event.Reason,
			Message: shorten(event.Message), Count: count,
		})
	}
	return activities
}
