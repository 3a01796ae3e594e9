package managedresource

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apply"
	"github.com/trellis-k8s/trellis/pkg/conditiontext"
	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// changeSet contains the decisions of a pass and their results. Status, Events, metrics and previews are derived from
// it.
type changeSet struct {
	changes []change
	// guarded is the error of the prune guard if it refuses deletions.
	guarded error
	kinds   freshKinds
}

// outdated reports whether a deletion was aborted because the ManagedResource or a Secret has changed since it was
// read.
func (s changeSet) outdated() bool {
	return slices.ContainsFunc(s.changes, func(c change) bool { return errors.Is(c.err, errOutdated) })
}

// remaining returns an inventory after all changes: the applied objects, and those that could not be deleted yet.
func (s changeSet) remaining(recorded inventory) inventory {
	remaining := maps.Clone(recorded)
	for _, change := range s.changes {
		if change.err != nil {
			continue
		}
		switch change.action {
		case actionCreate, actionApply:
			digest := digestOf(*change.manifest, change.observation)
			if len(change.dropped) > 0 {
				digest = "" // apply it every sync period, because the API server may learn the fields
			}
			entry := entryOf(*change.manifest, digest)
			entry.Completed = change.completed
			remaining[change.Key()] = entry
		case actionSkip:
			entry := remaining[change.Key()]
			if change.manifest.Directive.CreateOnly { // the annotation may be new
				entry = entryOf(*change.manifest, entry.Digest)
			}
			entry.Completed = entry.Completed || change.completed
			remaining[change.Key()] = entry
		case actionDelete, actionForget, actionRelease:
			delete(remaining, change.Key())
		}
	}
	return remaining
}

// written returns the objects that were created or changed.
func (s changeSet) written() []object.Ref {
	var refs []object.Ref
	for _, change := range s.changes {
		if change.err == nil && (change.action == actionCreate || change.action == actionApply && !change.unchanged) {
			refs = append(refs, change.Ref)
		}
	}
	return refs
}

// failedWrites returns the objects whose requests failed. Some of these requests may still have had an effect.
func (s changeSet) failedWrites() []object.Key {
	var failed []object.Key
	for i := range s.changes {
		if _, sent := taskOf(&s.changes[i]); sent && s.changes[i].err != nil {
			failed = append(failed, s.changes[i].Key())
		}
	}
	return failed
}

// acceptedFields returns the fields of other owners that the changes left on the objects.
func (s changeSet) acceptedFields() map[object.Key]*fieldpath.Set {
	accepted := map[object.Key]*fieldpath.Set{}
	for _, change := range s.changes {
		if change.manifest != nil && change.observation.TakeOverCandidates != nil {
			accepted[change.Key()] = change.observation.TakeOverCandidates
		}
	}
	return accepted
}

// tally groups the results of a reconcile by their effect on the condition.
type tally struct {
	problems    []problem
	failed      []change // could not be applied
	waiting     []change // to be applied later
	undeletable []change // could not be deleted
	pending     []change // being deleted
	unreleased  []change // could not be released
	fighting    []change // corrected, but changed repeatedly by other clients
	dropped     []change // applied without fields that the API server does not know
	handedOver  []change // kept until another ManagedResource has recorded them
	coerced     []string // had labels or annotations that were not strings
	duplicated  []string // had keys that occur twice
	differing   []string // differ from their manifests, or were sent in another way
	held        []change // wait for dependencies
	gate        gate     // why they wait
	revision    string   // the inputs that they come from
	guarded     error    // why the prune guard refuses deletions
	deleting    bool     // all objects are deleted
	notes       []string // about the deletion of all objects
}

func tallyOf(problems []problem, changes []change) tally {
	result := tally{problems: problems}
	for _, change := range changes {
		wanted := change.manifest != nil
		if remark := remarkOf(change); remark != "" {
			result.differing = append(result.differing, change.String()+": "+remark)
		}
		if change.fight.Active() {
			result.fighting = append(result.fighting, change)
		}
		if len(change.dropped) > 0 && change.err == nil {
			result.dropped = append(result.dropped, change)
		}
		switch {
		case change.action == actionHold:
			result.held = append(result.held, change)
		case change.err != nil && wanted:
			result.failed = append(result.failed, change)
		case change.releasing:
			result.unreleased = append(result.unreleased, change)
		case change.err != nil:
			result.undeletable = append(result.undeletable, change)
		case change.action == actionWait && change.fight.Active(): // only the message reports it
		case change.action == actionWait && wanted:
			result.waiting = append(result.waiting, change)
		case change.action == actionHandOver:
			result.handedOver = append(result.handedOver, change)
		case change.action == actionWait:
			result.pending = append(result.pending, change)
		}
	}
	return result
}

// verdict returns the content of ResourcesApplied. Status and reason are those of the most severe problem. The message
// lists all problems.
func (t tally) verdict() resourcesv1alpha1.Statement {
	message := t.message()
	blocked := t.gate.verdict(t.held, message)
	switch {
	case len(t.problems) > 0:
		return resourcesv1alpha1.NewStatement(resourcesv1alpha1.ConditionFalse, t.problemReason(), message)
	case len(t.failed) > 0:
		return resourcesv1alpha1.NewStatement(resourcesv1alpha1.ConditionFalse, resourcesv1alpha1.ReasonApplyFailed, message)
	case len(t.unreleased) > 0:
		return resourcesv1alpha1.NewStatement(resourcesv1alpha1.ConditionFalse,
			resourcesv1alpha1.ReasonReleaseOfOrphanedResourcesFailed, message)
	case len(t.undeletable) > 0:
		return resourcesv1alpha1.NewStatement(resourcesv1alpha1.ConditionFalse, resourcesv1alpha1.ReasonDeletionFailed, message)
	case t.guarded != nil:
		return resourcesv1alpha1.NewStatement(resourcesv1alpha1.ConditionFalse, resourcesv1alpha1.ReasonPruneRefused, message)
	case blocked != nil:
		return *blocked
	case len(t.waiting) > 0:
		return resourcesv1alpha1.NewStatement(resourcesv1alpha1.ConditionProgressing, resourcesv1alpha1.ReasonApplyProgressing, message)
	case len(t.pending) > 0 || t.deleting && len(t.handedOver) > 0:
		return resourcesv1alpha1.NewStatement(resourcesv1alpha1.ConditionProgressing, resourcesv1alpha1.ReasonDeletionPending, message)
	}
	if len(t.fighting)+len(t.handedOver)+len(t.dropped)+len(t.coerced)+len(t.duplicated)+len(t.differing) == 0 {
		message = "All resources are applied."
	}
	return resourcesv1alpha1.NewStatement(resourcesv1alpha1.ConditionTrue, resourcesv1alpha1.ReasonApplySucceeded, message)
}

func (t tally) problemReason() string {
	for _, problem := range t.problems {
		if problem.reason == resourcesv1alpha1.ReasonCannotReadSecret {
			return problem.reason
		}
	}
	return t.problems[0].reason
}

func (t tally) message() string {
	var unread, refusals []string
	for _, problem := range t.problems {
		if problem.refuses {
			refusals = append(refusals, problem.err.Error())
		} else {
			unread = append(unread, problem.err.Error())
		}
	}
	refused := "Nothing is applied or pruned"
	if t.deleting {
		refused = "Nothing is deleted"
	}
	sections := []string{
		t.gate.section(t.held, t.revision),
		section(refused, refusals),
		section("Could not read all manifests, so nothing is pruned", unread),
		section("Could not apply", textsOf(t.failed, errorOf)),
		section("Could not release", textsOf(t.unreleased, errorOf)),
		section("Could not delete", textsOf(t.undeletable, errorOf)),
		section("Waiting to apply", textsOf(t.waiting, reasonOf)),
		section("Deletion is still pending", textsOf(t.pending, reasonOf)),
		section("Handing over", textsOf(t.handedOver, reasonOf)),
		t.droppedFields(),
		section("Fighting over fields", textsOf(t.fighting, describeFight)),
		section("Applied differently from the manifests", slices.Clone(t.differing)),
		section("Converted to strings; quote them in the manifests", slices.Clone(t.coerced)),
		section("Keys that occur twice; only the last one counts, remove the others", slices.Clone(t.duplicated)),
	}
	if t.guarded != nil {
		sections = append(sections, "Not pruned: "+t.guarded.Error())
	}
	sections = append(sections, t.notes...)
	sections = slices.DeleteFunc(sections, func(s string) bool { return s == "" })
	return conditiontext.ForCondition(strings.Join(sections, "\n"))
}

// remarkOf returns how an object that was applied differs from its manifest, or how it was sent. It is empty if there is
// nothing to say.
func remarkOf(change change) string {
	observation := change.observation
	if change.manifest == nil || change.err != nil || change.manifest.Directive.CreateOnly || observation.UID == "" ||
		change.action != actionCreate && change.action != actionApply && change.action != actionSkip {
		return ""
	}
	isSize := func(pattern fieldowner.Pattern) bool { return slices.Equal(pattern, fieldowner.ClaimSize()) }
	switch {
	case observation.SentWhole() && !observation.Directive.Suspend:
		return "it is sent by updates, because the schema of its kind does not support server-side apply; additions of other clients are removed"
	case observation.OwnedDigest != "" && slices.ContainsFunc(change.manifest.Untaken, isSize) && !observation.Owned.MayHave(fieldowner.ClaimSize()):
		return "its size is larger than in the manifest, and Kubernetes does not shrink it; set the larger size in the manifest"
	}
	return ""
}

// section returns "<title> (<count>): <item>; <item>". The items are sorted, and volatile parts are removed, so that
// messages are stable.
func section(title string, items []string) string {
	if len(items) == 0 {
		return ""
	}
	for i := range items {
		items[i] = conditiontext.Stable(items[i])
	}
	slices.Sort(items)
	return fmt.Sprintf("%s (%d): %s", title, len(items), strings.Join(items, "; "))
}

// textsOf returns the text about each change.
func textsOf(changes []change, text func(change) string) []string {
	texts := make([]string, 0, len(changes))
	for _, change := range changes {
		texts = append(texts, text(change))
	}
	return texts
}

func errorOf(change change) string { return change.err.Error() }

func reasonOf(change change) string { return change.String() + ": " + change.reason }

func (t tally) droppedFields() string {
	return section("Applied without fields that the API server does not know", textsOf(t.dropped, droppedFrom))
}

// droppedFrom names an object and the fields without which it was applied.
func droppedFrom(change change) string {
	const shown = 10
	paths := change.dropped
	if len(paths) > shown {
		paths = append(slices.Clone(paths[:shown]), "…")
	}
	return change.String() + ": " + strings.Join(paths, ", ")
}

// describeFight names the field managers that keep changing an object. The text is stable while the managers stay the
// same.
func describeFight(change change) string {
	by := "another client"
	if managers := change.fight.Managers; len(managers) > 0 {
		by = fmt.Sprintf("the field manager %q", managers[0])
		for _, manager := range managers[1:] {
			by += fmt.Sprintf(" and %q", manager)
		}
	}
	if change.fight.Deleted {
		return fmt.Sprintf("%s keeps being deleted by another client: stop it, or remove the object from the manifests", change.Ref)
	}
	return fmt.Sprintf("%s keeps being changed by %s: stop one of the two writers from setting these fields; %s", change.Ref, by, waysToKeep)
}

// waysToKeep describes how to keep the changes of another client.
const waysToKeep = "to keep what the other client adds, set the annotation kustomize.toolkit.fluxcd.io/ssa: Merge in the manifest; " +
	"to leave single fields to it, use spec.driftDetection.ignore"

// removedAdditions names the fields that other clients had added to objects and that were removed. It is empty if there
// are none.
func removedAdditions(changes []change) string {
	var texts []string
	for _, change := range changes {
		if len(change.removed) > 0 && change.err == nil {
			texts = append(texts, change.String()+": "+strings.Join(change.removed, ", "))
		}
	}
	if len(texts) == 0 {
		return ""
	}
	return section("fields were removed that other clients had added", texts) + "; " + waysToKeep
}

// retryable reports whether a retry may help without a change by the user.
func (t tally) retryable() bool {
	return slices.ContainsFunc(t.problems, func(p problem) bool { return p.transient }) ||
		slices.ContainsFunc(slices.Concat(t.failed, t.unreleased, t.undeletable), func(c change) bool { return !apply.Terminal(c.err) })
}

// names returns "<count> (<name>, <name>, …)" for the objects of changes.
func names(changes []change) string {
	refs := make([]object.Ref, 0, len(changes))
	for _, change := range changes {
		refs = append(refs, change.Ref)
	}
	return countedNames(refs)
}

// countedNames returns "<count> (<name>, <name>, …)" for objects.
func countedNames(refs []object.Ref) string {
	const shown = 5
	texts := make([]string, 0, len(refs))
	for _, ref := range refs {
		texts = append(texts, ref.String())
	}
	slices.SortFunc(texts, cmp.Compare[string])
	if len(texts) > shown {
		texts = append(texts[:shown], "…")
	}
	return fmt.Sprintf("%d (%s)", len(refs), strings.Join(texts, ", "))
}
