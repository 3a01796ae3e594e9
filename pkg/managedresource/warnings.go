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
	// warningsInterval is how often the Events of one Service are read. Pending deletions are checked more often.
	warningsInterval = 5 * time.Second
	// maxExplainedServices limits the number of Services of one ManagedResource whose Events are shown, because the size
	// of a condition is limited.
	maxExplainedServices = 3
)

// explainPending adds the Events of Services whose deletion is pending to the reasons of their changes. The usual cause
// is a load balancer that cannot be removed, which only Events report.
func (p *pass) explainPending(ctx context.Context, changes []change) {
	var stuck []*change
	for i := range changes {
		change := &changes[i]
		if isStuckService(*change) {
			stuck = append(stuck, change)
		}
	}
	slices.SortFunc(stuck, func(a, b *change) int { return a.Key().Compare(b.Key()) })
	for _, change := range stuck[:min(len(stuck), maxExplainedServices)] {
		change.reason += warnings.Describe(p.warningsOf(ctx, *change), change.observation.UID, p.Clock.Now())
	}
}

func isStuckService(change change) bool {
	return change.action == actionWait && change.err == nil && change.manifest == nil && change.Group == "" &&
		change.Kind == "Service" && !change.observation.Deleting.IsZero()
}

// warningsOf returns the latest Events of a Service. It returns none if they cannot be read, for example because that
// is forbidden.
func (p *pass) warningsOf(ctx context.Context, change change) []corev1.Event {
	uid := change.observation.UID
	if events, known := p.warnings.get(uid, p.Clock.Now()); known {
		return events
	}
	events, err := p.Objects.Warnings(ctx, change.Ref, uid)
	if err != nil {
		log.FromContext(ctx).V(1).Info("Could not read the Events of a Service whose deletion is pending", "service", change.String(),
			"error", err.Error())
	}
	latest := warnings.Latest(events)
	p.warnings.set(uid, latest, p.Clock.Now())
	return latest
}

// recentWarnings caches the Events of objects. It is safe for concurrent use.
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

// get returns the Events of an object if they were read within warningsInterval.
func (w *recentWarnings) get(uid types.UID, now time.Time) ([]corev1.Event, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	read, known := w.byUID[uid]
	return read.events, known && now.Sub(read.at) < warningsInterval
}

// set stores the Events of an object, and deletes expired entries.
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
