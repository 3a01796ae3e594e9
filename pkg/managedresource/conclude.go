package managedresource

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/conditiontext"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// conclude writes the status, if it differs, and the Events, and says when to come back.
func (p *pass) conclude(ctx context.Context) (reconcile.Result, error) {
	if err := ctx.Err(); err != nil {
		return reconcile.Result{}, err // shutting down: what failed because of that is no failure to report
	}
	if p.confirmed != nil && errors.Is(*p.confirmed, errOutdated) {
		return reconcile.Result{RequeueAfter: outdatedInterval}, nil // with what asks for something else by then
	}
	p.explainPending(ctx)
	tally := tallyOf(p.problems, p.changes)
	tally.guarded, tally.deleting, tally.coerced = p.guarded, p.operation == opCleanUp, p.coerced
	tally.gate, tally.revision = p.gate, p.revisionOf()
	verdict := tally.verdict()
	before := resourcesv1alpha1.ConditionOf(p.mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied)

	status := p.mr.Status // its fields are replaced, never changed in place
	status.ObservedGeneration = p.mr.Generation
	remaining := p.remaining()
	status.Resources, status.PruneBaseline = remaining.references(), p.baselineAfter(remaining)
	conditions := func(base []resourcesv1alpha1.Condition) []resourcesv1alpha1.Condition {
		if p.operation == opCleanUp {
			return p.conditions(p.beingDeleted(base), verdict)
		}
		if len(tally.held) > 0 && len(status.Resources) == 0 {
			return p.conditions(p.notBegun(base), verdict)
		}
		return p.conditions(p.withInitialHealth(ctx, base), verdict)
	}
	status.Conditions = conditions(status.Conditions)
	if len(p.problems)+len(tally.held) == 0 && p.mr.DeletionTimestamp == nil {
		status.SecretsDataChecksum = &p.checksum
	}
	inputs, inputsErr := p.completeInputs(ctx, tally, verdict)
	status.AppliedInputs = inputs
	status, err := fit(status, p.mr.Spec)
	if err := errors.Join(err, inputsErr, p.suspend(ctx, tally)); err != nil {
		return reconcile.Result{}, err
	}
	untilStatus := p.untilStatusDue(verdict, before)
	if !equality.Semantic.DeepEqual(status, p.mr.Status) && untilStatus == 0 {
		if err := p.storeFinalStatus(ctx, status, conditions); err != nil {
			return reconcile.Result{}, err
		}
	}
	p.unrecorded.Record(p.self.Owner, failedWrites(p.changes))
	if p.operation == opCleanUp {
		p.deleted.Add(p.self.Owner, p.mr.UID, p.removed())
	}
	p.holdOn(p.remaining())
	p.acceptedFields.Set(p.self.Owner, acceptedFields(p.changes))
	p.Metrics.concluded(p.self.Owner, p.changes, tally)
	p.emitEvents(ctx)
	if verdict.status == resourcesv1alpha1.ConditionFalse && before.Message != verdict.message {
		p.Recorder.Eventf(p.mr, nil, corev1.EventTypeWarning, verdict.reason, actionEvent, "%s", conditiontext.ForEvent(verdict.message))
	}
	if len(tally.dropped) > 0 && before.Message != verdict.message {
		p.Recorder.Eventf(p.mr, nil, corev1.EventTypeWarning, eventDropped, actionEvent, "%s", conditiontext.ForEvent(tally.droppedFields()))
	}
	result, err := p.result(ctx, tally, verdict)
	if untilStatus > 0 && err == nil {
		result.RequeueAfter = min(result.RequeueAfter, untilStatus)
	}
	return result, err
}

// untilStatusDue says for how long the status need not tell what is left of a ManagedResource that is being deleted: it is not
// written again for each object that goes, and the inventory may name more than there are. It is 0 if the status is due.
func (p *pass) untilStatusDue(verdict verdict, before resourcesv1alpha1.Condition) time.Duration {
	if p.mr.DeletionTimestamp == nil || verdict.reason != resourcesv1alpha1.ReasonDeletionPending {
		return 0
	}
	due := p.deletionBegan().Add(deletionStatusAfter)
	if before.Reason == verdict.reason && before.Status == verdict.status {
		due = before.LastUpdateTime.Add(deletionStatusInterval)
	}
	return max(due.Sub(p.Clock.Now()), 0)
}

// conditions returns the conditions with what this controller has to say.
func (p *pass) conditions(conditions []resourcesv1alpha1.Condition, verdict verdict) []resourcesv1alpha1.Condition {
	now := p.Clock.Now()
	conditions = resourcesv1alpha1.SetCondition(conditions, resourcesv1alpha1.ResourcesApplied, verdict.statement(), now)
	return resourcesv1alpha1.SetReady(conditions, now)
}

// storeFinalStatus writes the status. Other controllers write conditions of their own meanwhile, which is no reason to
// start again as long as the inventory is the one that this reconcile worked on: then what they said is the base of the
// conditions.
func (p *pass) storeFinalStatus(ctx context.Context, status resourcesv1alpha1.ManagedResourceStatus,
	conditions func(base []resourcesv1alpha1.Condition) []resourcesv1alpha1.Condition,
) error {
	err := p.storeStatus(ctx, status)
	if !apierrors.IsConflict(err) {
		return err
	}
	fresh := &resourcesv1alpha1.ManagedResource{}
	if getErr := p.Direct.Get(ctx, p.self.Owner, fresh); getErr != nil {
		return errors.Join(err, getErr)
	}
	if fresh.UID != p.mr.UID || !equality.Semantic.DeepEqual(fresh.Status.Resources, p.mr.Status.Resources) {
		return err
	}
	p.mr.ResourceVersion = fresh.ResourceVersion
	status.Conditions = conditions(fresh.Status.Conditions)
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
			digest := digestOf(*change.manifest, change.observation)
			if len(change.dropped) > 0 {
				digest = "" // it is applied at every sync period: the API server may come to know the fields
			}
			remaining[change.Key()] = entryOf(*change.manifest, digest)
		case actionDelete, actionForget, actionRelease:
			delete(remaining, change.Key())
		}
	}
	return remaining
}

// removed returns the objects of the stored inventory that are gone or released.
func (p *pass) removed() []object.Key {
	remaining := p.remaining()
	var removed []object.Key
	for _, entry := range p.mr.Status.Resources {
		if key := refOfEntry(entry).Key(); !remaining.has(key) {
			removed = append(removed, key)
		}
	}
	return removed
}

// failedWrites returns the objects that were sent without success. Some of the requests may have had an effect all the same.
func failedWrites(changes []change) []object.Key {
	var failed []object.Key
	for i := range changes {
		if _, sent := taskOf(&changes[i]); sent && changes[i].err != nil {
			failed = append(failed, changes[i].Key())
		}
	}
	return failed
}

// acceptedFields returns the fields of others that the changes left on the objects.
func acceptedFields(changes []change) map[object.Key]*fieldpath.Set {
	accepted := map[object.Key]*fieldpath.Set{}
	for _, change := range changes {
		if change.manifest != nil && change.observation.Displaceable != nil {
			accepted[change.Key()] = change.observation.Displaceable
		}
	}
	return accepted
}

// completeInputs returns what the pass worked from, if it was complete, so that nothing needs to be read again until
// something changes.
func (p *pass) completeInputs(ctx context.Context, tally tally, verdict verdict) (string, error) {
	if len(tally.held) > 0 || tally.gate.closedHere {
		return p.mr.Status.AppliedInputs, nil // a change that is taken back while it waits is none
	}
	if verdict.status != resourcesv1alpha1.ConditionTrue || len(tally.fighting)+len(tally.handedOver)+len(tally.dropped) > 0 || p.operation != opApply {
		return "", nil
	}
	return p.inputs(ctx, p.secrets, slices.Collect(maps.Keys(p.remaining())))
}
