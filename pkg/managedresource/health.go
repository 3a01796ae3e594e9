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

// withInitialHealth returns the conditions with the first word on the health of the objects that were applied: what is known of them
// if nothing was said before by the present checks, that a rollout has begun, that what was changed is not healthy, or that the checks
// are pending. All else is left to the health controller, which knows whether a change for the worse is only passing.
func (p *pass) withInitialHealth(ctx context.Context, conditions []resourcesv1alpha1.Condition, remaining inventory, done changeSet,
) []resourcesv1alpha1.Condition {
	since, checksErr := p.Live.AdoptedChecks(p.self.String())
	if since > p.mr.Status.ObservedGeneration || checksErr != nil {
		conditions = p.checksPending(conditions) // what they say was found by other checks
	}
	if checksErr != nil {
		return conditions // the health controller reports it
	}
	refs, written := refsOfEntries(remaining), done.written()
	notShownYet := func(ref object.Ref) bool { return p.notShownYet(ref, done.kinds) }
	p.aside(func() { p.Live.ReadExamined(ctx, slices.DeleteFunc(slices.Clone(written), notShownYet)) }) // others are as they were
	states := p.Live.Read(ctx, slices.DeleteFunc(slices.Clone(refs), notShownYet))
	done.addFresh(states)
	first := !speaks(conditions, resourcesv1alpha1.ResourcesHealthy)
	if first {
		p.confirmAbsent(ctx, refs, states)
	}
	subjects := live.Subjects(refs, states)
	if !first {
		subjects = slices.DeleteFunc(subjects, func(subject health.Subject) bool { return subject.Missing })
	}
	changed := slices.DeleteFunc(live.Subjects(written, states), func(subject health.Subject) bool { return subject.Missing })
	found, ofChanged := judge(subjects), judge(changed)
	ofChanged.awaited = ofChanged.healthy.Status == resourcesv1alpha1.ConditionFalse && p.hasDependents(ctx)
	return initialHealth(conditions, found, ofChanged, p.Clock.Now())
}

// notShownYet reports whether an object is of a kind that is so new that its watch shows nothing. It is not waited for: the health controller
// reports how the object is.
func (p *pass) notShownYet(ref object.Ref, kinds freshKinds) bool {
	return kinds.fresh[ref.GroupKind()] && !p.Live.Shows(ref.GroupKind())
}

// addFresh adds the states of objects whose watch shows nothing yet, as they were applied.
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

// notBegun returns the conditions of health for a ManagedResource whose objects may not be applied yet.
func (p *pass) notBegun(conditions []resourcesv1alpha1.Condition) []resourcesv1alpha1.Condition {
	if speaks(conditions, resourcesv1alpha1.ResourcesHealthy) {
		return conditions
	}
	return p.checksPending(conditions)
}

// findings are what is found of objects.
type findings struct {
	healthy, progressing resourcesv1alpha1.Statement
	// unseen is set if an object is not known as it is now.
	unseen bool
	// awaited is set if an object is not healthy, and another ManagedResource waits for all of them.
	awaited bool
}

func judge(subjects []health.Subject) findings {
	return findings{
		healthy: health.Healthy(health.PendingIfUnobserved(subjects)), progressing: health.Progressing(subjects),
		unseen: slices.ContainsFunc(subjects, func(subject health.Subject) bool { return subject.Pending }),
	}
}

// confirmAbsent asks for the objects that no watch shows: some have no label.
func (p *pass) confirmAbsent(ctx context.Context, refs []object.Ref, states map[object.Key]live.State) {
	var absent []object.Ref
	for _, ref := range refs {
		if states[ref.Key()].Presence == live.Absent {
			absent = append(absent, ref)
		}
	}
	maps.Copy(states, p.Live.Fetch(ctx, absent))
}

// initialHealth decides about announce, by what is found of all objects, and of those that were changed. Of a changed object that no check
// has seen, or that is not healthy though it is not being rolled out, the condition must not repeat what it said before the change. If
// other ManagedResources wait, nor of one that is being rolled out: their changes would be applied too soon.
func initialHealth(conditions []resourcesv1alpha1.Condition, found, changed findings, now time.Time) []resourcesv1alpha1.Condition {
	pending := found.healthy.Reason == resourcesv1alpha1.ReasonChecksPending && found.progressing.Reason == resourcesv1alpha1.ReasonChecksPending
	broken := changed.healthy.Status == resourcesv1alpha1.ConditionFalse && changed.progressing.Status != resourcesv1alpha1.ConditionTrue
	if pending || broken || changed.unseen || changed.awaited || !speaks(conditions, resourcesv1alpha1.ResourcesHealthy) {
		healthy := found.healthy
		if healthy.Status == resourcesv1alpha1.ConditionFalse && found.progressing.Status == resourcesv1alpha1.ConditionTrue {
			healthy = health.HealthPending() // what has just been created may only need a moment
		}
		conditions = resourcesv1alpha1.SetCondition(conditions, resourcesv1alpha1.ResourcesHealthy, healthy, now)
	}
	if pending || found.progressing.Status == resourcesv1alpha1.ConditionTrue || !speaks(conditions, resourcesv1alpha1.ResourcesProgressing) {
		conditions = resourcesv1alpha1.SetCondition(conditions, resourcesv1alpha1.ResourcesProgressing, found.progressing, now)
	}
	return conditions
}

// speaks reports whether a condition says anything of the objects as they are checked.
func speaks(conditions []resourcesv1alpha1.Condition, conditionType resourcesv1alpha1.ConditionType) bool {
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

// checksPending returns the conditions of health for a changed set of objects that has not been checked.
func (p *pass) checksPending(conditions []resourcesv1alpha1.Condition) []resourcesv1alpha1.Condition {
	return p.setHealth(conditions, health.HealthPending(), health.ProgressingPending())
}

// beingDeleted returns the conditions of health for objects that are deleted because their ManagedResource is, or because it
// went to another class.
func (p *pass) beingDeleted(conditions []resourcesv1alpha1.Condition) []resourcesv1alpha1.Condition {
	const reason = resourcesv1alpha1.ReasonDeletionPending
	return p.setHealth(conditions,
		resourcesv1alpha1.Statement{Status: resourcesv1alpha1.ConditionFalse, Reason: reason, Message: messageBeingDeleted},
		resourcesv1alpha1.Statement{Status: resourcesv1alpha1.ConditionTrue, Reason: reason, Message: messageBeingDeleted})
}

// unchecked returns the conditions of health for a ManagedResource that asks to be ignored. The statuses are those that
// clients of gardener-resource-manager expect.
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
