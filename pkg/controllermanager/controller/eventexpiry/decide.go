package eventexpiry

import (
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// Expires returns the time at which an Event is deleted. Events about Shoots are not. An Event that repeats is as old as its last
// occurrence.
func Expires(event *eventsv1.Event, ttl time.Duration) (time.Time, bool) {
	about := event.Regarding
	if version, err := schema.ParseGroupVersion(about.APIVersion); err == nil && version.Group == corev1beta1.GroupName && about.Kind == "Shoot" {
		return time.Time{}, false
	}
	var last time.Time
	switch {
	case event.Series != nil && !event.Series.LastObservedTime.IsZero():
		last = event.Series.LastObservedTime.Time
	case !event.EventTime.IsZero():
		last = event.EventTime.Time
	case !event.DeprecatedLastTimestamp.IsZero():
		last = event.DeprecatedLastTimestamp.Time
	default:
		last = event.CreationTimestamp.Time
	}
	return last.Add(ttl), true
}

// keep keeps the fields on which the decision depends.
func keep(kept, event *eventsv1.Event) {
	kept.CreationTimestamp, kept.EventTime, kept.DeprecatedLastTimestamp = event.CreationTimestamp, event.EventTime, event.DeprecatedLastTimestamp
	kept.Regarding.APIVersion, kept.Regarding.Kind = event.Regarding.APIVersion, event.Regarding.Kind
	if event.Series != nil {
		kept.Series = &eventsv1.EventSeries{LastObservedTime: event.Series.LastObservedTime}
	}
}
