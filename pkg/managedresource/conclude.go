package managedresource

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/conditiontext"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// conclude writes the status if it has changed, writes Events, and returns when to reconcile again.
func (p *pass) conclude(ctx context.Context, plan plan, done changeSet) (reconcile.Result, error) {
	if err := ctx.Err(); err != nil {
		return reconcile.Result{}, err // failures that are caused by the shutdown are not reported
	}
	if done.outdated() {
		return reconcile.Result{RequeueAfter: outdatedInterval}, nil
	}
	p.endFights(done.changes)
	outcome := p.outcome(ctx, plan, done)
	before := resourcesv1alpha1.ConditionOf(p.mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied)
	conditions := func(base []resourcesv1alpha1.Condition) []resourcesv1alpha1.Condition {
		return p.finalConditions(ctx, base, done, outcome)
	}
	status, err := p.finalStatus(ctx, plan, done, outcome, conditions)
	if err != nil {
		return reconcile.Result{}, err
	}
	untilStatus := p.untilStatusDue(outcome.verdict, before, plan.recorded)
	if !equality.Semantic.DeepEqual(status, p.mr.Status) && untilStatus == 0 {
		if err := p.storeFinalStatus(ctx, status, conditions); err != nil {
			return reconcile.Result{}, err
		}
	}
	p.unrecorded.Record(p.self.Owner, done.failedWrites())
	if p.operation == opCleanUp {
		p.deleted.Add(p.self.Owner, p.mr.UID, p.removed(outcome.remaining))
	}
	plan.recorded = outcome.remaining
	p.updateClaims(plan.input)
	p.acceptedFields.Set(p.self.Owner, done.acceptedFields())
	p.Metrics.concluded(p.self.Owner, done.changes, outcome.tally)
	p.emitEvents(ctx, done)
	if before.Message != outcome.verdict.Message {
		p.emitWarnings(outcome)
	}
	result, err := p.result(ctx, outcome)
	if untilStatus > 0 && err == nil {
		result.RequeueAfter = min(result.RequeueAfter, untilStatus)
	}
	return result, err
}

// outcome is the result of a pass: its tally, the content of ResourcesApplied, and the inventory after all changes.
type outcome struct {
	tally
	verdict   resourcesv1alpha1.Statement
	remaining inventory
}

func (p *pass) outcome(ctx context.Context, plan plan, done changeSet) outcome {
	tally := tallyOf(plan.problems, done.changes)
	tally.guarded, tally.deleting, tally.coerced, tally.duplicated = done.guarded, p.operation == opCleanUp, plan.coerced, plan.duplicated
	tally.gate, tally.revision = plan.gate, p.revisionOf(plan.input)
	for _, changes := range [][]change{tally.pending, tally.waiting} {
		if len(changes) > 0 {
			p.explainPending(ctx, changes)
		}
	}
	if p.operation == opCleanUp {
		tally.notes = p.deletionNotes(plan.deletionOrder)
	}
	return outcome{tally: tally, verdict: tally.verdict(), remaining: p.resendFailed(done.remaining(plan.recorded), done.changes)}
}

// resendFailed returns the inventory without the digests of the objects that the operation "reconcile" failed to send.
// They have to be sent again even if nothing has changed.
func (p *pass) resendFailed(remaining inventory, changes []change) inventory {
	if !p.requested {
		return remaining
	}
	for _, change := range changes {
		if entry, recorded := remaining[change.Key()]; recorded && change.err != nil && change.manifest != nil {
			entry.Digest = ""
			remaining[change.Key()] = entry
		}
	}
	return remaining
}

// finalStatus returns the status after the pass. It also suspends the manifests if the next pass needs them.
func (p *pass) finalStatus(ctx context.Context, plan plan, done changeSet, outcome outcome,
	conditions func([]resourcesv1alpha1.Condition) []resourcesv1alpha1.Condition,
) (resourcesv1alpha1.ManagedResourceStatus, error) {
	status := p.mr.Status // a shallow copy: its fields are only replaced
	status.ObservedGeneration = p.mr.Generation
	status.Resources, status.PruneBaseline = outcome.remaining.references(), p.baselineAfter(plan, outcome.remaining, done.changes)
	status.Conditions = conditions(status.Conditions)
	if len(plan.problems)+len(outcome.held) == 0 && p.mr.DeletionTimestamp == nil {
		status.SecretsDataChecksum = &plan.checksum
	}
	inputs, inputsErr := p.completeInputs(ctx, plan, outcome)
	status.AppliedInputs = inputs
	status, fitErr := fit(status, p.mr.Spec)
	return status, errors.Join(fitErr, inputsErr, p.suspend(ctx, plan, done.kinds, outcome.tally))
}

// finalConditions returns the conditions after the pass, based on the given ones.
func (p *pass) finalConditions(ctx context.Context, base []resourcesv1alpha1.Condition, done changeSet, outcome outcome,
) []resourcesv1alpha1.Condition {
	switch {
	case p.operation == opCleanUp:
		return p.conditions(p.beingDeleted(base), outcome.verdict)
	case len(outcome.held) > 0 && len(outcome.remaining) == 0:
		return p.conditions(p.pendingUnlessChecked(base), outcome.verdict)
	}
	return p.conditions(p.withInitialHealth(ctx, base, outcome.remaining, done), outcome.verdict)
}

// untilStatusDue returns how long the status of a ManagedResource that is being deleted does not have to be written. It
// is 0 if the status is due. The status is not written for each deleted object, and the inventory may contain objects
// that no longer exist.
func (p *pass) untilStatusDue(verdict resourcesv1alpha1.Statement, before resourcesv1alpha1.Condition, recorded inventory) time.Duration {
	if p.mr.DeletionTimestamp == nil || verdict.Reason != resourcesv1alpha1.ReasonDeletionPending {
		return 0
	}
	due := p.deletionBegan(recorded).Add(deletionStatusAfter)
	if before.Reason == verdict.Reason && before.Status == verdict.Status {
		due = before.LastUpdateTime.Add(deletionStatusInterval)
	}
	return max(due.Sub(p.Clock.Now()), 0)
}

// conditions returns conditions with ResourcesApplied set to the verdict, and with Ready updated.
func (p *pass) conditions(conditions []resourcesv1alpha1.Condition, verdict resourcesv1alpha1.Statement) []resourcesv1alpha1.Condition {
	now := p.Clock.Now()
	conditions = resourcesv1alpha1.SetCondition(conditions, resourcesv1alpha1.ResourcesApplied, verdict, now)
	return resourcesv1alpha1.SetReady(conditions, now)
}

// storeFinalStatus writes the status. After a conflict, it tries again if the stored inventory is still the one of this
// pass. Another controller has then written its own conditions, which are kept.
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

// complete reports whether there is nothing left to do until something changes.
func (o outcome) complete() bool {
	return o.verdict.Status == resourcesv1alpha1.ConditionTrue && len(o.fighting)+len(o.handedOver)+len(o.dropped) == 0
}

// removed returns the objects of the stored inventory that were deleted or released.
func (p *pass) removed(remaining inventory) []object.Key {
	var removed []object.Key
	for _, entry := range p.mr.Status.Resources {
		if key := refOfEntry(entry).Key(); !remaining.has(key) {
			removed = append(removed, key)
		}
	}
	return removed
}

// completeInputs returns the digest of the inputs of the pass if it was complete. The inputs do not have to be read
// again until they change.
func (p *pass) completeInputs(ctx context.Context, plan plan, outcome outcome) (string, error) {
	if len(outcome.held) > 0 || outcome.gate.closedHere {
		return p.mr.Status.AppliedInputs, nil // so that a waiting change can be reverted without any effect
	}
	if p.operation != opApply || !outcome.complete() {
		return "", nil
	}
	return p.inputs(ctx, plan.secrets, plan.scalers, slices.Collect(maps.Keys(outcome.remaining)))
}

// result returns when to reconcile again: soon for pending objects, with increasing delays after failures that a retry
// may resolve, and after the sync period otherwise.
func (p *pass) result(ctx context.Context, outcome outcome) (reconcile.Result, error) {
	verdict := outcome.verdict
	switch {
	case outcome.retryable(): // the error is logged by the caller
		return reconcile.Result{}, fmt.Errorf("%s: %s", verdict.Reason, conditiontext.ForEvent(verdict.Message))
	case len(outcome.waiting) > 0 || len(outcome.pending) > 0:
		// At most half of the time is spent on passes, because a pass over many objects takes long.
		return reconcile.Result{RequeueAfter: max(p.untilNextCheck(outcome.tally), p.Clock.Since(p.started))}, nil
	}
	if verdict.Status == resourcesv1alpha1.ConditionFalse {
		log.FromContext(ctx).Info("ManagedResource needs a change by its user", "reason", verdict.Reason,
			"message", verdict.Message)
	}
	return reconcile.Result{RequeueAfter: min(p.untilDue(outcome.fighting), p.Options.SyncPeriod)}, nil
}

// untilDue returns the time until the first of the deferred changes is due, limited by the sync period. The end of a
// fight is also due, because the condition reports the fight.
func (p *pass) untilDue(changes []change) time.Duration {
	soonest := p.Options.SyncPeriod
	for _, change := range changes {
		due := change.due
		if due.IsZero() && change.fight.Active() {
			due = change.fight.Ends()
		}
		if !due.IsZero() {
			soonest = min(soonest, max(due.Sub(p.Clock.Now()), 0)+dueMargin)
		}
	}
	return soonest
}

// untilNextCheck returns the time until pending objects are checked, because not every change of them is an event.
func (p *pass) untilNextCheck(tally tally) time.Duration {
	soonest := min(watchedInterval, p.untilDue(slices.Concat(tally.waiting, tally.pending, tally.fighting)))
	for _, change := range slices.Concat(tally.waiting, tally.pending) {
		if change.due.IsZero() && !p.Live.Watches(change.Ref) {
			return min(soonest, pendingInterval)
		}
	}
	return soonest
}

// actionEvent is the action in the Events on ManagedResources.
const actionEvent = "Reconcile"

// Reasons of Events on ManagedResources, in addition to those of conditions. There are no Events about the effects of
// changed manifests, because conditions report them and an Event costs as much as an object.
//
// +events:on=ManagedResource
const (
	eventCorrected = "Corrected"     // Normal: objects that another client had changed or deleted were corrected
	eventPruned    = "Pruned"        // Normal: objects were deleted because they were removed from the manifests
	eventKept      = "Kept"          // Normal: objects were not deleted, because their annotations request this; delete them yourself
	eventTakenOver = "TakenOver"     // Normal: objects were taken over from the named field manager, which previously applied them
	eventDropped   = "UnknownFields" // Warning: objects were applied without the named fields, which the API server does not know
	eventContested = "Contested"     // Warning: the named field manager keeps changing an object, so corrections are delayed
)

// emitEvents logs all changes, and writes Events about those that were not caused by the manifests.
func (p *pass) emitEvents(ctx context.Context, done changeSet) {
	effects, takenOver := map[string][]object.Ref{}, map[string][]object.Ref{}
	removed := removedAdditions(done.changes)
	for _, change := range done.changes {
		if reason := effectOf(change); reason != "" {
			effects[reason] = append(effects[reason], change.Ref)
		}
		if change.takenFrom != "" {
			takenOver[change.takenFrom] = append(takenOver[change.takenFrom], change.Ref)
		}
		if change.startsFight {
			p.Recorder.Eventf(p.mr, nil, corev1.EventTypeWarning, eventContested, actionEvent, "%s",
				conditiontext.ForEvent(describeFight(change)+"; corrections are delayed increasingly"))
		}
	}
	for manager, objects := range takenOver {
		text := conditiontext.ForEvent(fmt.Sprintf("all fields that field manager %q had applied to %s", manager, countedNames(objects)))
		log.FromContext(ctx).Info("Took over fields", "manager", manager, "fields", text)
		p.Recorder.Eventf(p.mr, nil, corev1.EventTypeNormal, eventTakenOver, actionEvent, "Took over %s", text)
	}
	for reason, objects := range effects {
		text := conditiontext.ForEvent(countedNames(objects))
		log.FromContext(ctx).Info("Changed objects in the target cluster", "change", reason, "objects", text)
		if reason == eventCorrected && removed != "" {
			text += "; " + removed
		}
		if reason == eventKept {
			text += ", because the annotations of these objects request this; they belong to no ManagedResource now"
		}
		if reason == eventCorrected || reason == eventKept || reason == eventPruned && p.mr.DeletionTimestamp == nil {
			p.Recorder.Eventf(p.mr, nil, corev1.EventTypeNormal, reason, actionEvent, "%s %s", reason, text)
		}
	}
}

// emitWarnings writes Events about the problems that ResourcesApplied reports.
func (p *pass) emitWarnings(outcome outcome) {
	verdict := outcome.verdict
	if verdict.Status == resourcesv1alpha1.ConditionFalse {
		p.Recorder.Eventf(p.mr, nil, corev1.EventTypeWarning, verdict.Reason, actionEvent, "%s", conditiontext.ForEvent(verdict.Message))
	}
	if len(outcome.dropped) > 0 {
		p.Recorder.Eventf(p.mr, nil, corev1.EventTypeWarning, eventDropped, actionEvent, "%s", conditiontext.ForEvent(outcome.droppedFields()))
	}
}

// effectOf returns the effect of a change on the object. It is empty if the change had no effect.
func effectOf(change change) string {
	applied := change.action == actionCreate || change.action == actionApply && !change.unchanged
	switch {
	case change.err != nil:
		return ""
	case applied && change.drift && !change.fight.Active():
		return eventCorrected
	case change.action == actionCreate:
		return "Created"
	case applied:
		return "Updated"
	case change.action == actionDelete:
		return eventPruned
	case change.kept:
		return eventKept
	}
	return ""
}
