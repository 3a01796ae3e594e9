package managedresource

import (
	"context"
	"maps"
	"slices"
	"time"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/health"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// withInitialHealth returns the conditions with an initial report on the health of the applied objects: the known
// health if the current checks have not reported any, the start of a rollout, the failure of a changed object, or that
// checks are pending. Everything else is left to the health controller, which detects whether a deterioration is only
// temporary.
func (p *pass) withInitialHealth(ctx context.Context, conditions []resourcesv1alpha1.Condition, remaining inventory, done changeSet,
) []resourcesv1alpha1.Condition {
	since, checksErr := p.Live.AdoptedChecks(p.self.String())
	if since > p.mr.Status.ObservedGeneration || checksErr != nil {
		conditions = p.checksPending(conditions) // they were set by other checks
	}
	if checksErr != nil {
		return conditions // the health controller reports it
	}
	refs, written := refsOfEntries(remaining), done.written()
	notShownYet := func(ref object.Ref) bool { return p.notShownYet(ref, done.kinds) }
	p.releaseWorkerWhile(func() { // other objects are unchanged
		p.Live.ReadExamined(ctx, slices.DeleteFunc(slices.Clone(written), notShownYet))
	})
	states := p.Live.Read(ctx, slices.DeleteFunc(slices.Clone(refs), notShownYet))
	done.addFresh(states)
	first := !hasResult(conditions, resourcesv1alpha1.ResourcesHealthy)
	if first {
		p.confirmAbsent(ctx, refs, states)
	}
	refs = slices.DeleteFunc(refs, func(ref object.Ref) bool {
		return remaining[ref.Key()].Completed && states[ref.Key()].Presence == live.Absent
	})
	subjects := live.Subjects(refs, states)
	if !first {
		subjects = slices.DeleteFunc(subjects, func(subject health.Subject) bool { return subject.Missing })
	}
	changed := slices.DeleteFunc(live.Subjects(written, states), func(subject health.Subject) bool { return subject.Missing })
	found, ofChanged := judge(subjects), judge(changed)
	ofChanged.awaited = ofChanged.healthy.Status == resourcesv1alpha1.ConditionFalse && p.hasDependents(ctx)
	return initialHealth(conditions, found, ofChanged, p.Clock.Now())
}

// notShownYet reports whether the kind of an object is so new that its watch shows no objects. The pass does not wait
// for the watch. The health controller reports the health of the object later.
func (p *pass) notShownYet(ref object.Ref, kinds freshKinds) bool {
	return kinds.fresh[ref.GroupKind()] && !p.Live.Shows(ref.GroupKind())
}

// addFresh adds the applied states of objects whose watch shows nothing yet.
func (s changeSet) addFresh(states map[object.Key]live.State) {
	for _, change := range s.changes {
		if _, known := states[change.Key()]; known || change.manifest == nil || !s.kinds.fresh[change.GroupKind()] {
			continue
		}
		states[change.Key()] = live.State{Presence: live.Absent}
		if change.err == nil {
			states[change.Key()] = live.State{Presence: live.Present, Observation: change.observation}
		}
	}
}

// pendingUnlessChecked returns the health conditions of a ManagedResource none of whose objects may be applied yet.
func (p *pass) pendingUnlessChecked(conditions []resourcesv1alpha1.Condition) []resourcesv1alpha1.Condition {
	if hasResult(conditions, resourcesv1alpha1.ResourcesHealthy) {
		return conditions
	}
	return p.checksPending(conditions)
}

// findings are the results of the checks of objects.
type findings struct {
	healthy, progressing resourcesv1alpha1.Statement
	// unseen is set if the current state of an object has not been observed.
	unseen bool
	// awaited is set if an object is unhealthy and other ManagedResources depend on this one.
	awaited bool
}

func judge(subjects []health.Subject) findings {
	return findings{
		healthy: health.Healthy(health.PendingIfUnobserved(subjects)), progressing: health.Progressing(subjects),
		unseen: slices.ContainsFunc(subjects, func(subject health.Subject) bool { return subject.Pending }),
	}
}

// confirmAbsent reads the objects that no watch shows, because some do not have the managed-by label.
func (p *pass) confirmAbsent(ctx context.Context, refs []object.Ref, states map[object.Key]live.State) {
	var absent []object.Ref
	for _, ref := range refs {
		if states[ref.Key()].Presence == live.Absent {
			absent = append(absent, ref)
		}
	}
	maps.Copy(states, p.Live.Fetch(ctx, absent))
}

// initialHealth sets the health conditions by the findings for all objects and for the changed ones. If a check has not
// seen a changed object, or the object is unhealthy without a rollout in progress, the condition must not keep the
// result from before the change. If other ManagedResources depend on this one, this also applies to an unhealthy object
// with a rollout in progress. Otherwise, their changes would be applied too early.
func initialHealth(conditions []resourcesv1alpha1.Condition, found, changed findings, now time.Time) []resourcesv1alpha1.Condition {
	pending := found.healthy.Reason == resourcesv1alpha1.ReasonChecksPending &&
		found.progressing.Reason == resourcesv1alpha1.ReasonChecksPending
	broken := changed.healthy.Status == resourcesv1alpha1.ConditionFalse && changed.progressing.Status != resourcesv1alpha1.ConditionTrue
	if pending || broken || changed.unseen || changed.awaited || !hasResult(conditions, resourcesv1alpha1.ResourcesHealthy) {
		healthy := found.healthy
		if healthy.Status == resourcesv1alpha1.ConditionFalse && found.progressing.Status == resourcesv1alpha1.ConditionTrue {
			healthy = health.HealthPending() // new objects may need a moment to become healthy
		}
		conditions = resourcesv1alpha1.SetCondition(conditions, resourcesv1alpha1.ResourcesHealthy, healthy, now)
	}
	if pending || found.progressing.Status == resourcesv1alpha1.ConditionTrue ||
		!hasResult(conditions, resourcesv1alpha1.ResourcesProgressing) {
		conditions = resourcesv1alpha1.SetCondition(conditions, resourcesv1alpha1.ResourcesProgressing, found.progressing, now)
	}
	return conditions
}

// hasResult reports whether a condition has a result of the checks.
func hasResult(conditions []resourcesv1alpha1.Condition, conditionType resourcesv1alpha1.ConditionType) bool {
	switch resourcesv1alpha1.ConditionOf(conditions, conditionType).Reason {
	case "", resourcesv1alpha1.ReasonChecksPending, resourcesv1alpha1.ReasonManagedResourceIgnored:
		return false
	}
	return true
}

const (
	messageBeingDeleted     = "The resources are currently being deleted."
	messageIgnored          = "ManagedResource is marked to be ignored."
	messageIgnoredUnchecked = messageIgnored + " Its objects are not checked."
)

// checksPending returns the health conditions of a changed set of objects that has not been checked.
func (p *pass) checksPending(conditions []resourcesv1alpha1.Condition) []resourcesv1alpha1.Condition {
	return p.setHealth(conditions, health.HealthPending(), health.ProgressingPending())
}

// beingDeleted returns the health conditions of objects that are deleted because their ManagedResource is being deleted
// or its class has changed.
func (p *pass) beingDeleted(conditions []resourcesv1alpha1.Condition) []resourcesv1alpha1.Condition {
	const reason = resourcesv1alpha1.ReasonDeletionPending
	return p.setHealth(conditions,
		resourcesv1alpha1.Statement{Status: resourcesv1alpha1.ConditionFalse, Reason: reason, Message: messageBeingDeleted},
		resourcesv1alpha1.Statement{Status: resourcesv1alpha1.ConditionTrue, Reason: reason, Message: messageBeingDeleted})
}

// unchecked returns the health conditions of a ManagedResource with the annotation resources.gardener.cloud/ignore. The
// statuses are those that clients of gardener-resource-manager expect.
func (p *pass) unchecked(conditions []resourcesv1alpha1.Condition) []resourcesv1alpha1.Condition {
	const reason = resourcesv1alpha1.ReasonManagedResourceIgnored
	return p.setHealth(conditions,
		resourcesv1alpha1.Statement{Status: resourcesv1alpha1.ConditionTrue, Reason: reason, Message: messageIgnoredUnchecked},
		resourcesv1alpha1.Statement{Status: resourcesv1alpha1.ConditionFalse, Reason: reason, Message: messageIgnoredUnchecked})
}

func (p *pass) setHealth(conditions []resourcesv1alpha1.Condition, healthy, progressing resourcesv1alpha1.Statement,
) []resourcesv1alpha1.Condition {
	now := p.Clock.Now()
	conditions = resourcesv1alpha1.SetCondition(conditions, resourcesv1alpha1.ResourcesHealthy, healthy, now)
	return resourcesv1alpha1.SetCondition(conditions, resourcesv1alpha1.ResourcesProgressing, progressing, now)
}
