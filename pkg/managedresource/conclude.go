package managedresource

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// Reasons and actions of the Events on ManagedResources.
const (
	eventCreated = "Created"
	eventUpdated = "Updated"
	eventPruned  = "Pruned"
	actionEvent  = "Reconcile"
)

// conclude writes the status, if it differs, and the Events, and says when to come back.
func (p *pass) conclude(ctx context.Context) (reconcile.Result, error) {
	if err := ctx.Err(); err != nil {
		return reconcile.Result{}, err // shutting down: what failed because of that is no failure to report
	}
	tally := tallyOf(p.problems, p.changes)
	tally.guarded = p.guarded
	verdict := tally.verdict()
	before := conditionOf(p.mr.Status, resourcesv1alpha1.ResourcesApplied)

	status := *p.mr.Status.DeepCopy()
	status.ObservedGeneration = p.mr.Generation
	status.Resources = p.remaining().references()
	status.Conditions = p.conditions(status.Conditions, verdict)
	if len(p.problems) == 0 && p.mr.DeletionTimestamp == nil {
		status.SecretsDataChecksum = &p.checksum
	}
	status, err := fit(status)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !equality.Semantic.DeepEqual(status, p.mr.Status) {
		if err := p.storeFinalStatus(ctx, status); err != nil {
			return reconcile.Result{}, err
		}
	}
	p.claims.set(p.self.owner, slices.Collect(maps.Keys(p.remaining())))
	p.wakeHeirs(ctx)
	p.emitEvents(ctx)
	if verdict.status == resourcesv1alpha1.ConditionFalse && before.Message != verdict.message {
		p.Recorder.Eventf(p.mr, nil, corev1.EventTypeWarning, verdict.reason, actionEvent, "%s", shorten(verdict.message))
	}
	return p.result(ctx, tally, verdict)
}

// conditions returns the conditions with what this controller has to say.
func (p *pass) conditions(conditions []resourcesv1alpha1.Condition, verdict verdict) []resourcesv1alpha1.Condition {
	ready := verdict
	if ready.status == resourcesv1alpha1.ConditionProgressing {
		ready.status = resourcesv1alpha1.ConditionUnknown // what other tools know
	}
	conditions = setCondition(conditions, resourcesv1alpha1.ResourcesApplied, verdict, p.Clock.Now())
	return setCondition(conditions, resourcesv1alpha1.Ready, ready, p.Clock.Now())
}

// concludeBlocked says why nothing is done for now. The ManagedResources that are waited for wake this one.
func (p *pass) concludeBlocked(ctx context.Context, verdict verdict) (reconcile.Result, error) {
	status := *p.mr.Status.DeepCopy()
	status.ObservedGeneration = p.mr.Generation
	status.Conditions = p.conditions(status.Conditions, verdict)
	if !equality.Semantic.DeepEqual(status, p.mr.Status) {
		if err := p.storeFinalStatus(ctx, status); err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{RequeueAfter: p.Options.SyncPeriod}, nil
}

// storeFinalStatus writes the status. Other controllers write conditions of their own meanwhile, which is no reason to
// start again as long as the inventory is the one that this reconcile worked on.
func (p *pass) storeFinalStatus(ctx context.Context, status resourcesv1alpha1.ManagedResourceStatus) error {
	err := p.storeStatus(ctx, status)
	if !apierrors.IsConflict(err) {
		return err
	}
	fresh := &resourcesv1alpha1.ManagedResource{}
	if getErr := p.Direct.Get(ctx, p.self.owner, fresh); getErr != nil {
		return errors.Join(err, getErr)
	}
	if fresh.UID != p.mr.UID || !equality.Semantic.DeepEqual(fresh.Status.Resources, p.mr.Status.Resources) {
		return err
	}
	p.mr.ResourceVersion = fresh.ResourceVersion
	return p.storeStatus(ctx, status)
}

// remaining returns the inventory after all changes: what was applied, and what could not be deleted yet.
func (p *pass) remaining() inventory {
	remaining := maps.Clone(p.recorded)
	for _, change := range p.changes {
		if change.err != nil {
			continue
		}
		switch change.action {
		case actionCreate, actionApply:
			remaining[change.Key()] = entryOf(*change.manifest, digestOf(*change.manifest, change.observation))
		case actionDelete, actionForget, actionRelease:
			delete(remaining, change.Key())
		}
	}
	return remaining
}

// result says when to come back: soon for what is pending, with growing delay for what failed but may work the next
// time, and after the sync period otherwise.
func (p *pass) result(ctx context.Context, tally tally, verdict verdict) (reconcile.Result, error) {
	switch {
	case tally.retryable(): // the error is logged by the caller
		return reconcile.Result{}, fmt.Errorf("%s: %s", verdict.reason, shorten(verdict.message))
	case len(tally.waiting) > 0 || len(tally.pending) > 0:
		// Never more than half of the time: a pass over many objects takes long.
		return reconcile.Result{RequeueAfter: max(pendingInterval, p.Clock.Since(p.started))}, nil
	}
	if verdict.status == resourcesv1alpha1.ConditionFalse {
		log.FromContext(ctx).Info("ManagedResource waits for a change by its user", "reason", verdict.reason,
			"message", verdict.message)
	}
	return reconcile.Result{RequeueAfter: p.Options.SyncPeriod}, nil
}

// emitEvents tells, in Events and the log, what was changed in the target cluster.
func (p *pass) emitEvents(ctx context.Context) {
	done := map[string][]change{}
	for _, change := range p.changes {
		switch {
		case change.err != nil:
		case change.action == actionCreate:
			done[eventCreated] = append(done[eventCreated], change)
		case change.action == actionApply && !change.unchanged:
			done[eventUpdated] = append(done[eventUpdated], change)
		case change.action == actionDelete:
			done[eventPruned] = append(done[eventPruned], change)
		}
	}
	for _, reason := range []string{eventCreated, eventUpdated, eventPruned} {
		if changes := done[reason]; len(changes) > 0 {
			text := shorten(names(changes))
			p.Recorder.Eventf(p.mr, nil, corev1.EventTypeNormal, reason, actionEvent, "%s %s", reason, text)
			log.FromContext(ctx).Info("Changed objects in the target cluster", "what", reason, "objects", text)
		}
	}
}

// wakeHeirs has the ManagedResources that take objects over do so at once.
func (p *pass) wakeHeirs(ctx context.Context) {
	if p.wake == nil {
		return
	}
	woken := map[types.NamespacedName]bool{}
	for _, change := range p.changes {
		if change.heir != nil && !woken[*change.heir] {
			woken[*change.heir] = true
			select {
			case p.wake <- event.TypedGenericEvent[types.NamespacedName]{Object: *change.heir}:
			case <-ctx.Done():
				return
			}
		}
	}
}

// shorten keeps a text within what the API server accepts as the note of an Event.
func shorten(text string) string {
	const limit = 900
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + " …"
}
