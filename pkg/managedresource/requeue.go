package managedresource

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/conditiontext"
)

// result says when to come back: soon for what is pending, with growing delay for what failed but may work the next
// time, and after the sync period otherwise.
func (p *pass) result(ctx context.Context, tally tally, verdict verdict) (reconcile.Result, error) {
	switch {
	case tally.retryable(): // the error is logged by the caller
		return reconcile.Result{}, fmt.Errorf("%s: %s", verdict.reason, conditiontext.ForEvent(verdict.message))
	case len(tally.waiting) > 0 || len(tally.pending) > 0:
		// Never more than half of the time: a pass over many objects takes long.
		return reconcile.Result{RequeueAfter: max(p.untilNextLook(tally), p.Clock.Since(p.started))}, nil
	}
	if verdict.status == resourcesv1alpha1.ConditionFalse {
		log.FromContext(ctx).Info("ManagedResource waits for a change by its user", "reason", verdict.reason,
			"message", verdict.message)
	}
	return reconcile.Result{RequeueAfter: min(p.untilDue(tally.fighting), p.Options.SyncPeriod)}, nil
}

// untilDue says how soon the first one of the changes that wait is due. That a contest is over is told then, too.
func (p *pass) untilDue(changes []change) time.Duration {
	soonest := p.Options.SyncPeriod
	for _, change := range changes {
		due := change.due
		if due.IsZero() && change.fight.active() {
			due = change.fight.ends()
		}
		if !due.IsZero() {
			soonest = min(soonest, max(due.Sub(p.Clock.Now()), 0)+dueMargin)
		}
	}
	return soonest
}

// untilNextLook says how soon something that is waited for may have happened without an event that tells.
func (p *pass) untilNextLook(tally tally) time.Duration {
	soonest := min(watchedInterval, p.untilDue(slices.Concat(tally.waiting, tally.pending, tally.fighting)))
	for _, change := range slices.Concat(tally.waiting, tally.pending) {
		if change.due.IsZero() && !p.Live.Watches(change.Ref) {
			return min(soonest, pendingInterval)
		}
	}
	return soonest
}
