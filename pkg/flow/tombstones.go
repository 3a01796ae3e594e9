package flow

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// tombstone decides on the tombstone of a bundle.
func (d *decider) tombstone(tombstone Tombstone) {
	key := tombstone.Key
	mr := d.live.ManagedResources[key]
	switch hold := d.heldAll(); {
	case mr == nil:
	case hold != "":
		d.Held[key] = hold
	case !d.owner.owns(mr.Labels) && tombstone.Release != "":
		// It is released.
	case !d.owner.owns(mr.Labels):
		d.Problems[key] = foreign(mr)
	case tombstone.Release != "" && !NeverApplied(mr):
		d.release(tombstone, mr)
	default:
		d.deletion(tombstone, mr)
	}
}

// heldAll returns why the whole plan is held, empty if it is not. In this case nothing is deleted either, because the
// replacements might be held.
func (d *decider) heldAll() string {
	for _, wait := range d.plan.Waits {
		if wait.HoldsAll {
			return wait.Name + ": " + wait.Reason
		}
	}
	return ""
}

// deletion decides on the deletion of an existing bundle.
func (d *decider) deletion(tombstone Tombstone, mr *resourcesv1alpha1.ManagedResource) {
	key := tombstone.Key
	before, err := d.before(tombstone, mr)
	if err != nil {
		d.Problems[key] = err.Error()
		return
	}
	step := Step{Key: key, uid: mr.UID, force: tombstone.Force, migrate: tombstone.Migrate}
	moves := !tombstone.Migrate.IsZero()
	confirmed := !tombstone.Confirm && !moves || len(mr.Status.Resources) == 0 || mr.Annotations[AnnotationConfirmed] == digestOfNames(mr.Spec.SecretRefs)
	switch {
	case moves && !confirmed && (mr.DeletionTimestamp != nil || len(d.live.missing(mr)) > 0):
		// Its objects cannot be asked by a revision any more. If they were deleted, the extension would delete what they stand for.
		d.Problems[key] = "it was deleted, or its manifests were, before its extension was asked to give up its objects: " +
			"annotate the objects with gardener.cloud/operation=migrate, and remove the finalizers of the ManagedResource"
	case mr.DeletionTimestamp != nil:
		d.Pending[key] = "it is being deleted"
		switch {
		case len(before) > 0:
		case !confirmed:
			step.Action, step.Reason, step.inPlace = ActionConfirm, "it was deleted before its objects have confirmed that", true
			d.Steps = append(d.Steps, step)
		case d.waitsForOthers(mr):
			step.Action, step.Reason = ActionRelease, "it recorded another order of deletion than the plan has"
			d.Steps = append(d.Steps, step)
		}
	case NeverApplied(mr):
		// There is nothing to confirm, and no order. Its dependencies must not become ready in the meantime.
		step.Action, step.Reason, step.resourceVersion = ActionDelete, "the plan deletes it, and nothing of it was ever applied", mr.ResourceVersion
		d.Steps = append(d.Steps, step)
	case len(before) > 0:
		d.Pending[key] = "it is deleted after " + joinWith(before, ", ")
	case tombstone.Kept != "" && (confirmed && notApplied(mr) == "" || !tombstone.Confirm && !moves):
		d.Pending[key] = tombstone.Kept
	case !tombstone.Confirm && !moves:
		step.Action, step.Reason = ActionDelete, "the plan deletes it"
		d.Steps = append(d.Steps, step)
	case !confirmed:
		step.Action, step.Reason = ActionConfirm, "the plan deletes it, and its objects must confirm that first"
		step.inPlace = len(d.live.missing(mr)) > 0
		d.Steps = append(d.Steps, step)
	case notApplied(mr) != "":
		d.Pending[key] = "the confirmation of its deletion " + notApplied(mr)
	default:
		step.Action, step.Reason = ActionDelete, "the plan deletes it, and its objects have confirmed that"
		d.Steps = append(d.Steps, step)
	}
}

// NeverApplied reports whether no object of a ManagedResource was ever sent to the API server. A resource-manager adds its finalizer before it applies anything, and records in the inventory what it is about
// to apply.
func NeverApplied(mr *resourcesv1alpha1.ManagedResource) bool {
	started := slices.ContainsFunc(mr.Finalizers, func(name string) bool { return strings.HasPrefix(name, resourcesv1alpha1.Finalizer) })
	return len(mr.Status.Resources) == 0 && (!started || mr.Status.ObservedGeneration == mr.Generation)
}

// before returns the existing bundles that must be deleted before the one of a tombstone.
func (d *decider) before(tombstone Tombstone, mr *resourcesv1alpha1.ManagedResource) ([]Key, error) {
	if tombstone.After != nil {
		return slices.DeleteFunc(slices.Clone(tombstone.After), func(key Key) bool { return d.live.ManagedResources[key] == nil }), nil
	}
	if text := mr.Annotations[AnnotationDeleteAfter]; text != "" {
		var after []Key
		if err := json.Unmarshal([]byte(text), &after); err != nil {
			return nil, fmt.Errorf("annotation %s of ManagedResource %s: %w", AnnotationDeleteAfter, keyOf(mr), err)
		}
		return slices.DeleteFunc(after, func(key Key) bool { return d.live.ManagedResources[key] == nil }), nil
	}
	var after []Key
	for _, other := range d.live.owned(d.owner) {
		needed, err := neededBy(other)
		if err != nil {
			return nil, err
		}
		if slices.Contains(needed, keyOf(mr)) {
			after = append(after, keyOf(other))
		}
	}
	return after, nil
}

// waitsForOthers reports whether the resource-manager waits for another bundle before it deletes the objects of a
// ManagedResource that is being deleted, according to the order that the ManagedResource recorded.
func (d *decider) waitsForOthers(mr *resourcesv1alpha1.ManagedResource) bool {
	if ptr.Deref(mr.Spec.KeepObjects, false) {
		return false
	}
	named, set := mr.DeletedAfter()
	for _, other := range d.live.owned(d.owner) {
		name := client.ObjectKeyFromObject(other)
		if set && slices.Contains(named, name) || !set && slices.Contains(other.Dependencies(), client.ObjectKeyFromObject(mr)) {
			return true
		}
	}
	return false
}

// neededBy returns the bundles that a ManagedResource depends on, or depended on until its deletion was confirmed.
func neededBy(mr *resourcesv1alpha1.ManagedResource) ([]Key, error) {
	keys := dependencies(mr.Namespace, mr.Spec)
	if text := mr.Annotations[AnnotationDependencies]; text != "" {
		var former []Key
		if err := json.Unmarshal([]byte(text), &former); err != nil {
			return nil, fmt.Errorf("annotation %s of ManagedResource %s: %w", AnnotationDependencies, keyOf(mr), err)
		}
		keys = append(keys, former...)
	}
	return keys, nil
}

func inventoryKey(entry resourcesv1alpha1.ObjectReference) object.Key {
	group := schema.FromAPIVersionAndKind(entry.APIVersion, entry.Kind).Group
	return object.Key{Group: group, Kind: entry.Kind, Namespace: entry.Namespace, Name: entry.Name}
}

func joinWith(keys []Key, separator string) string {
	return strings.ReplaceAll(joinKeys(keys), " → ", separator)
}
