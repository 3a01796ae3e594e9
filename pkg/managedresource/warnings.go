package managedresource

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trellis-k8s/trellis/pkg/warnings"
)

const (
	// warningsInterval is how often the causes of one pending deletion are read. Pending deletions are checked more often.
	warningsInterval = 5 * time.Second
	// maxExplained limits the number of objects of one ManagedResource whose causes are shown, because the size of a condition is
	// limited.
	maxExplained = 3
)

// explainPending adds the causes of pending deletions to the reasons of their changes, for kinds that do not report them in their
// metadata: the Events of Services, usually because a load balancer cannot be removed, and the conditions of Namespaces.
func (p *pass) explainPending(ctx context.Context, changes []change) {
	var stuck []*change
	for i := range changes {
		change := &changes[i]
		if isStuckService(*change) || isStuckNamespace(*change) {
			stuck = append(stuck, change)
		}
	}
	slices.SortFunc(stuck, func(a, b *change) int { return a.Key().Compare(b.Key()) })
	for _, change := range stuck[:min(len(stuck), maxExplained)] {
		change.reason += p.causeOf(ctx, *change)
	}
}

func isStuckService(change change) bool {
	return waitsForDeletion(change) && change.manifest == nil && change.Kind == "Service"
}

// isStuckNamespace also reports a Namespace that another client deletes.
func isStuckNamespace(change change) bool {
	return waitsForDeletion(change) && change.Kind == "Namespace"
}

// waitsForDeletion reports whether an object of Kubernetes' core group is being deleted.
func waitsForDeletion(change change) bool {
	return change.action == actionWait && change.err == nil && change.Group == "" && !change.observation.Deleting.IsZero()
}

// causeOf returns a text about the cause of a pending deletion, to append to its reason. It is empty if the cause cannot be read, for
// example because that is forbidden.
func (p *pass) causeOf(ctx context.Context, change change) string {
	uid := change.observation.UID
	if text, known := p.warnings.get(uid, p.Clock.Now()); known {
		return text
	}
	text, err := p.readCause(ctx, change)
	if err != nil {
		log.FromContext(ctx).V(1).Info("Could not read why a deletion is pending", "object", change.String(), "error", err.Error())
	}
	p.warnings.set(uid, text, p.Clock.Now())
	return text
}

func (p *pass) readCause(ctx context.Context, change change) (string, error) {
	if change.Kind == "Namespace" {
		namespace, err := p.Objects.Namespace(ctx, change.Name)
		if err != nil {
			return "", err
		}
		if text := warnings.OfNamespace(namespace); text != "" && namespace.UID == change.observation.UID {
			return ": " + text, nil
		}
		return "", nil
	}
	uid := change.observation.UID
	events, err := p.Objects.Warnings(ctx, change.Ref, uid)
	return warnings.Describe(warnings.Latest(events), uid, p.Clock.Now()), err
}

// recentWarnings caches the causes of pending deletions. It is safe for concurrent use.
type recentWarnings struct {
	mu    sync.Mutex
	byUID map[types.UID]readCause
}

type readCause struct {
	at   time.Time
	text string
}

func newRecentWarnings() *recentWarnings {
	return &recentWarnings{byUID: map[types.UID]readCause{}}
}

// get returns the cause for an object if it was read within warningsInterval.
func (w *recentWarnings) get(uid types.UID, now time.Time) (string, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	read, known := w.byUID[uid]
	return read.text, known && now.Sub(read.at) < warningsInterval
}

// set stores the cause for an object, and deletes expired entries.
func (w *recentWarnings) set(uid types.UID, text string, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for other, read := range w.byUID {
		if now.Sub(read.at) >= warningsInterval {
			delete(w.byUID, other)
		}
	}
	w.byUID[uid] = readCause{at: now, text: text}
}
