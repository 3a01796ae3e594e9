// Package warnings describes the Events about an object for users.
package warnings

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
)

const (
	// maxShown is the maximum number of Events per object, as in gardener-resource-manager.
	maxShown = 5
	// maxLength is the maximum length of an Event's message in bytes.
	maxLength = 256
)

// Latest returns the Events to show, latest first. Of several Events with the same meaning, it returns the latest one.
func Latest(events []corev1.Event) []corev1.Event {
	sorted := slices.SortedFunc(slices.Values(events), func(a, b corev1.Event) int {
		return cmp.Or(LastSeen(b).Compare(LastSeen(a)), cmp.Compare(a.Name, b.Name))
	})
	seen := map[string]bool{}
	latest := make([]corev1.Event, 0, maxShown) // allocated separately, so that the other Events can be freed
	for _, event := range sorted {
		text := gist(event)
		if !seen[text] && len(latest) < maxShown {
			latest = append(latest, event)
		}
		seen[text] = true
	}
	return latest
}

// gist returns the message of an Event without the name of the object and of its Pods, because Pods of the same
// workload usually have the same problem.
func gist(event corev1.Event) string {
	text := strings.TrimPrefix(event.Message, "(combined from similar events): ") // client-go's recorder
	if event.InvolvedObject.Name == "" {
		return text
	}
	return regexp.MustCompile(regexp.QuoteMeta(event.InvolvedObject.Name)+`[-\w]*`).ReplaceAllString(text, "")
}

// Describe returns a text to append to a message about the object with the UID; empty without Events. An Event about
// another object names that object. Times have a precision of minutes, so that the message does not change at every
// reconcile.
func Describe(events []corev1.Event, uid types.UID, now time.Time) string {
	if len(events) == 0 {
		return ""
	}
	var text strings.Builder
	text.WriteString("\n\n-> Events:")
	for _, event := range events {
		fmt.Fprintf(&text, "\n* %s reported", reporterOf(event))
		if about := event.InvolvedObject; about.UID != uid && about.Name != "" {
			fmt.Fprintf(&text, " of %s %s", about.Kind, about.Name)
		}
		fmt.Fprintf(&text, " %s ago", age(LastSeen(event), now))
		if count := countOf(event); count > 1 {
			fmt.Fprintf(&text, " (x%d over %s)", count, age(firstSeen(event), now))
		}
		message := strings.Join(strings.Fields(event.Message), " ")
		if len(message) > maxLength {
			message = strings.ToValidUTF8(message[:maxLength], "") + " …"
		}
		text.WriteString(": " + message)
	}
	return text.String()
}

func reporterOf(event corev1.Event) string {
	return cmp.Or(event.Source.Component, event.ReportingController, "an unknown component")
}

// LastSeen returns when an Event was last reported. The field depends on the API with which the Event was written.
func LastSeen(event corev1.Event) time.Time {
	switch {
	case event.Series != nil && !event.Series.LastObservedTime.IsZero():
		return event.Series.LastObservedTime.Time
	case !event.LastTimestamp.IsZero():
		return event.LastTimestamp.Time
	}
	return firstSeen(event)
}

func firstSeen(event corev1.Event) time.Time {
	switch {
	case !event.FirstTimestamp.IsZero():
		return event.FirstTimestamp.Time
	case !event.EventTime.IsZero():
		return event.EventTime.Time
	}
	return event.CreationTimestamp.Time
}

func countOf(event corev1.Event) int32 {
	if event.Series != nil {
		return max(event.Count, event.Series.Count)
	}
	return event.Count
}

// age formats a duration as kubectl does.
func age(when, now time.Time) string {
	since := now.Sub(when).Truncate(time.Minute)
	if since <= 0 {
		return "less than 1m"
	}
	return duration.HumanDuration(since)
}
