package managedresource

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trellis-k8s/trellis/pkg/warnings"
)

const (
	// warningsInterval is how often the Events of one Service are read: pending deletions are looked at more often.
	warningsInterval = 5 * time.Second
	// servicesExplained is for how many Services of one ManagedResource Events are shown: a condition has no room for more.
	servicesExplained = 3
)

// explainPending adds the Events of Services whose deletion is pending to the reasons of their changes: mostly a load balancer cannot be
// removed, which only Events report.
func (p *pass) explainPending(ctx context.Context, changes []change) {
	var stuck []*change
	for i := range changes {
		change := &changes[i]
		if isStuckService(*change) {
			stuck = append(stuck, change)
		}
	}
	slices.SortFunc(stuck, func(a, b *change) int { return a.Key().Compare(b.Key()) })
	for _, change := range stuck[:min(len(stuck), servicesExplained)] {
		change.reason += warnings.Describe(p.warningsOf(ctx, *change), change.observation.UID, p.Clock.Now())
	}
}

func isStuckService(change change) bool {
	return change.action == actionWait && change.err == nil && change.manifest == nil && change.Group == "" &&
		change.Kind == "Service" && !change.observation.Deleting.IsZero()
}

// warningsOf returns the Events of a Service. It returns nothing if they cannot be read, as that may be forbidden.
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
	latest := warnings.Latest(events)
	p.warnings.set(uid, latest, p.Clock.Now())
	return latest
}

// recentWarnings remembers the Events of objects for a while. It is safe for concurrent use.
type recentWarnings struct {
	mu    sync.Mutex
	byUID map[types.UID]readEvents
}

type readEvents struct {
	at     time.Time
	events []corev1.Event
}

func newRecentWarnings() *recentWarnings {
	return &recentWarnings{byUID: map[types.UID]readEvents{}}
}

// get returns the Events of an object if they were read a short time ago.
func (w *recentWarnings) get(uid types.UID, now time.Time) ([]corev1.Event, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	read, known := w.byUID[uid]
	return read.events, known && now.Sub(read.at) < warningsInterval
}

// set remembers the Events of an object, and forgets those that were read long ago.
func (w *recentWarnings) set(uid types.UID, events []corev1.Event, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for other, read := range w.byUID {
		if now.Sub(read.at) >= warningsInterval {
			delete(w.byUID, other)
		}
	}
	w.byUID[uid] = readEvents{at: now, events: events}
}
