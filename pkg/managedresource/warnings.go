package managedresource

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// warningsShown is how many Events of a Service that is not gone are shown, as in gardener-resource-manager.
	warningsShown = 5
	// warningLength is how much of an Event's message is shown.
	warningLength = 256
	// warningsInterval is how often the Events of one Service are read: pending deletions are looked at more often.
	warningsInterval = 5 * time.Second
	// servicesExplained is for how many Services of one ManagedResource Events are shown: a condition has no room for more.
	servicesExplained = 3
)

// explainPending says of Services whose deletion is pending what was reported about them: it mostly is a load balancer that
// cannot be removed, of which only Events tell.
func (p *pass) explainPending(ctx context.Context) {
	var stuck []*change
	for i := range p.changes {
		change := &p.changes[i]
		if isStuckService(*change) {
			stuck = append(stuck, change)
		}
	}
	slices.SortFunc(stuck, func(a, b *change) int { return a.Key().Compare(b.Key()) })
	for _, change := range stuck[:min(len(stuck), servicesExplained)] {
		change.reason += describeWarnings(p.warningsOf(ctx, *change), p.Clock.Now())
	}
}

func isStuckService(change change) bool {
	return change.action == actionWait && change.err == nil && change.manifest == nil && change.Group == "" &&
		change.Kind == "Service" && !change.observation.Deleting.IsZero()
}

// warningsOf returns the Events of a Service. That they cannot be read, which may be forbidden, is nobody's concern here.
func (p *pass) warningsOf(ctx context.Context, change change) []corev1.Event {
	uid := change.observation.UID
	if events, known := p.warnings.get(uid, p.Clock.Now()); known {
		return events
	}
	events, err := p.Objects.Warnings(ctx, change.Ref, uid)
	if err != nil {
		log.FromContext(ctx).V(1).Info("Could not read the Events of a Service that is not gone", "service", change.String(),
			"error", err.Error())
	}
	latest := latestWarnings(events)
	p.warnings.set(uid, latest, p.Clock.Now())
	return latest
}

// latestWarnings returns those of the Events that are shown, the latest one first.
func latestWarnings(events []corev1.Event) []corev1.Event {
	sorted := slices.SortedFunc(slices.Values(events), func(a, b corev1.Event) int {
		return cmp.Or(lastSeen(b).Compare(lastSeen(a)), cmp.Compare(a.Name, b.Name))
	})
	return slices.Clone(sorted[:min(len(sorted), warningsShown)]) // the others need not be kept in memory
}

// describeWarnings returns Events as they are appended to a message, empty if there are none. Times are in minutes, so that
// the message does not change at every look.
func describeWarnings(events []corev1.Event, now time.Time) string {
	if len(events) == 0 {
		return ""
	}
	var text strings.Builder
	text.WriteString("\n\n-> Events:")
	for _, event := range events {
		fmt.Fprintf(&text, "\n* %s reported %s ago", reporterOf(event), age(lastSeen(event), now))
		if count := countOf(event); count > 1 {
			fmt.Fprintf(&text, " (x%d over %s)", count, age(firstSeen(event), now))
		}
		message := strings.Join(strings.Fields(event.Message), " ")
		if len(message) > warningLength {
			message = strings.ToValidUTF8(message[:warningLength], "") + " …"
		}
		text.WriteString(": " + message)
	}
	return text.String()
}

func reporterOf(event corev1.Event) string {
	return cmp.Or(event.Source.Component, event.ReportingController, "somebody")
}

// The times of Events are in different fields, depending on the API that they were written with.
func lastSeen(event corev1.Event) time.Time {
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

// age returns how long ago something was, as kubectl writes it.
func age(when, now time.Time) string {
	since := now.Sub(when).Truncate(time.Minute)
	if since <= 0 {
		return "less than 1m"
	}
	return duration.HumanDuration(since)
}

// warnings remembers the Events of objects for a while. It is safe for concurrent use.
type warnings struct {
	mu    sync.Mutex
	byUID map[types.UID]readEvents
}

type readEvents struct {
	at     time.Time
	events []corev1.Event
}

func newWarnings() *warnings {
	return &warnings{byUID: map[types.UID]readEvents{}}
}

// get returns the Events of an object if they were read a short time ago.
func (w *warnings) get(uid types.UID, now time.Time) ([]corev1.Event, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	read, known := w.byUID[uid]
	return read.events, known && now.Sub(read.at) < warningsInterval
}

// set remembers the Events of an object, and forgets those that were read long ago.
func (w *warnings) set(uid types.UID, events []corev1.Event, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for other, read := range w.byUID {
		if now.Sub(read.at) >= warningsInterval {
			delete(w.byUID, other)
		}
	}
	w.byUID[uid] = readEvents{at: now, events: events}
}
