package managedresource

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apply"
	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/fight"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/object"
	"github.com/trellis-k8s/trellis/pkg/ownership"
)

// plan is the plan of a pass: its input, with an inventory that contains all objects that are applied, and the gate for
// which changes wait.
type plan struct {
	input
	// baseline is the number of objects in the inventory before the manifests changed. The share of the prune guard refers
	// to it.
	baseline int
	gate     gate
	// deletionOrder names the ManagedResources for which a deletion does not wait.
	deletionOrder deletionOrder
}

// action is the decision about one object.
type action string

const (
	// actionCreate applies an object that does not exist.
	actionCreate action = "Create"
	// actionApply applies an object that exists.
	actionApply action = "Apply"
	// actionSkip sends nothing, because the object is unchanged since it was applied.
	actionSkip action = "Skip"
	// actionDelete deletes an object that is no longer wanted.
	actionDelete action = "Delete"
	// actionForget removes an object that no longer exists from the inventory.
	actionForget action = "Forget"
	// actionRelease removes an object from the inventory without deleting it.
	actionRelease action = "Release"
	// actionHandOver removes an object from the inventory once the inventory of a successor contains it.
	actionHandOver action = "HandOver"
	// actionWait defers the change to a later reconcile.
	actionWait action = "Wait"
	// actionHold defers the change until the dependencies are ready.
	actionHold action = "Hold"
	// actionConflict leaves the object to the ManagedResource that owns it.
	actionConflict action = "Conflict"
	// actionFail reports that the change is not possible.
	actionFail action = "Fail"
)

// change is the decision about one object and, once it was executed, its result.
type change struct {
	object.Ref
	action action
	// reason is a human-readable explanation of the action.
	reason string
	// manifest is set for objects that are wanted.
	manifest *object.Manifest
	// observation is the state of the object before the change or, if the object was applied, after it.
	observation live.Observation
	// strip are labels and annotations of other clients that are removed.
	strip apply.Strip
	// finalize is set if the finalizers of an object that is being deleted are removed.
	finalize bool
	// drift is set if the object has changed since it was applied, although its manifest has not.
	drift bool
	// revised is set if the manifest certainly differs from the one that was last applied.
	revised bool
	// fight is the record of earlier drift.
	fight fight.Fight
	// startsFight is set if this correction starts a fight.
	startsFight bool
	// kept is set if the object is not deleted because its annotations request this.
	kept bool
	// completed is set if the object is a Job with a TTL that has finished, whether it still exists or not.
	completed bool
	// releasing is set if the release of the object failed.
	releasing bool
	// successors are the ManagedResources that may take over the object.
	successors []types.NamespacedName
	// dropped are the paths of fields without which the object was applied, because the API server does not know them.
	dropped []string
	// removed are paths of fields that another client had added and that this correction removed.
	removed []string
	// takenFrom is the field manager that previously applied the object for a ManagedResource, if the origin of the object
	// is the only evidence of that.
	takenFrom string
	// unchanged is set if applying the object had no effect.
	unchanged bool
	// due is when a deferred change is checked. It is zero if the end of the wait is an event.
	due time.Time
	// err is the error that prevented the change.
	err error
}

// applyInput is the input of the decisions about wanted objects.
type applyInput struct {
	manifests []object.Manifest
	recorded  inventory
	live      map[object.Key]live.State
	ownership ownership.Owners
	// heldBack are the kinds whose CustomResourceDefinition in the same ManagedResource is not served yet, with the
	// reason.
	heldBack map[schema.GroupKind]heldBack
	// forceLabels and forceAnnotations remove labels and annotations that other clients added.
	forceLabels, forceAnnotations bool
	// always applies objects even if nothing has changed. requested does the same once, for the operation "reconcile".
	always, requested bool
	// fights returns the record of earlier drift of an object. It may be nil.
	fights func(object.Key) fight.Fight
	now    time.Time
	// gate holds back changes.
	gate gate
	// unrecorded reports whether an object may have been written after the inventory was stored, so that its recorded
	// digest is not reliable. It is nil if no object was.
	unrecorded func(object.Key) bool
}

// planApply decides what to do with every wanted object.
func planApply(in applyInput) []change {
	changes := make([]change, 0, len(in.manifests))
	for i := range in.manifests {
		manifest := &in.manifests[i]
		state := in.live[manifest.Key()]
		if manifest.Adopted != nil && state.Observation.Unlabelled {
			manifest = manifest.Adopted
		}
		change := in.delayIfFighting(manifest, in.decide(manifest, state))
		change.Ref, change.manifest, change.observation = manifest.Ref, manifest, state.Observation
		change.completed = change.completed || state.Observation.Finished
		sent := sentDigest(in.recorded[manifest.Key()])
		change.revised = sent != "" && sent != manifest.Digest
		changes = append(changes, change)
	}
	in.gate.hold(changes, in.recorded)
	return changes
}

func (in applyInput) decide(manifest *object.Manifest, state live.State) change {
	key := manifest.Key()
	switch state.Presence {
	case live.Present:
		return in.decidePresent(manifest, state.Observation)
	case live.Absent:
		if owner, ok := in.ownership.FirstClaim(key); ok && owner != in.ownership.Self.Owner {
			return conflict(key, owner.String())
		}
		if (state.Finished || in.recorded[key].Completed) && in.undoesDrift(manifest) {
			return change{action: actionSkip, completed: true, reason: "it has finished, and is created again when its manifest changes"}
		}
		return change{action: actionCreate, drift: in.undoesDrift(manifest), reason: "it does not exist"}
	case live.KindNotServed:
		if held, ok := in.heldBack[manifest.GroupKind()]; ok {
			return change{
				action: actionWait, due: in.now.Add(held.again), reason: fmt.Sprintf("its CustomResourceDefinition is not ready: %v", held.err),
			}
		}
		return change{action: actionFail, err: fmt.Errorf("%s: %w: install its CustomResourceDefinition or API, "+
			"or remove the object", manifest.Ref, state.Err)}
	default:
		return change{action: actionFail, err: errors.Join(errNotRead, state.Err)}
	}
}

// errNotRead is the error of objects whose state is unknown.
var errNotRead = errors.New("the live object cannot be read")

func (in applyInput) decidePresent(manifest *object.Manifest, observation live.Observation) change {
	key := manifest.Key()
	if owner, ok := in.ownership.OtherOwner(key, observation); ok {
		return conflict(key, owner)
	}
	if !observation.Deleting.IsZero() && observation.Finished && in.undoesDrift(manifest) {
		return change{action: actionSkip, reason: "it has finished, and its TTL deletes it"}
	}
	if !observation.Deleting.IsZero() {
		return change{action: actionWait, reason: "it is being deleted; it is created again afterwards"}
	}
	if manifest.Directive.CreateOnly || observation.Directive.Suspend {
		return change{action: actionSkip, reason: "its annotations request this"}
	}
	strip := in.foreignKeys(manifest, observation)
	digest := digestOf(*manifest, observation)
	recorded := in.recorded[key].Digest
	switch drift := in.undoesDrift(manifest); {
	case in.requested:
		return change{action: actionApply, reason: "the operation " + resourcesv1alpha1.OperationReconcile + " sends everything", strip: strip}
	case in.always:
		return change{action: actionApply, reason: "controllers.managedResource.alwaysUpdate is set", strip: strip}
	case digest == "" || recorded == "":
		return change{action: actionApply, reason: "it was not applied before", strip: strip}
	case in.isUnrecorded(key):
		return change{action: actionApply, reason: "the status was not stored since it was applied", strip: strip}
	case digest != recorded:
		return change{action: actionApply, drift: drift, reason: "it or its manifest changed", strip: strip}
	case in.appliedByOther(observation):
		return change{action: actionApply, reason: "another ManagedResource applied it since", strip: strip}
	case fieldowner.Beyond(observation.TakeOverCandidates, untakenOf(manifest)):
		return change{action: actionApply, drift: drift, reason: "another client added fields to it", strip: strip}
	case len(strip.Labels) > 0 || len(strip.Annotations) > 0:
		return change{action: actionApply, drift: drift, reason: "another client added labels or annotations to it", strip: strip}
	case manifest.ReplicasFromZero != nil && observation.Replicas.Zero():
		return change{action: actionApply, drift: drift, reason: "it has 0 replicas, from which its autoscaler does not scale"}
	}
	return change{action: actionSkip, reason: "nothing changed"}
}

// untakenOf returns the fields that are not taken over from other clients.
func untakenOf(manifest *object.Manifest) []fieldowner.Pattern {
	return slices.Concat(manifest.Preserve, manifest.PreserveIfSet, manifest.Untaken)
}

// undoesDrift reports whether a manifest that has to be applied is the one that was last applied. Another client has
// then changed the object.
func (in applyInput) undoesDrift(manifest *object.Manifest) bool {
	return sentDigest(in.recorded[manifest.Key()]) == manifest.Digest && !in.isUnrecorded(manifest.Key())
}

func (in applyInput) isUnrecorded(key object.Key) bool {
	return in.unrecorded != nil && in.unrecorded(key)
}

// appliedByOther reports whether another ManagedResource was the last one to apply an object. Digests cannot detect
// this, because it may have sent the same fields.
func (in applyInput) appliedByOther(observation live.Observation) bool {
	origin, ok := resourcesv1alpha1.ParseOrigin(observation.Origin)
	return ok && origin.Owner != in.ownership.Self.Owner
}

// delayIfFighting delays the correction of an object that another client keeps changing. The delay increases with each
// correction.
func (in applyInput) delayIfFighting(manifest *object.Manifest, decided change) change {
	if in.fights == nil {
		return decided
	}
	decided.fight = in.fights(manifest.Key())
	if resumes := decided.fight.Resumes(); decided.drift && in.now.Before(resumes) {
		decided.action, decided.due, decided.strip = actionWait, resumes, apply.Strip{}
	}
	return decided
}

// conflict leaves an object to its owner. The next attempt is made when the owner releases the object, which enqueues
// all ManagedResources that claim it, or after the sync period.
func conflict(key object.Key, owner string) change {
	return change{action: actionConflict, err: apply.Permanent(fmt.Errorf("%s belongs to ManagedResource %s, which keeps it: "+
		"remove it from one of the two", key, owner))}
}

// referencePrefix is the prefix of the annotations that prevent the garbage collector from deleting the objects that
// they reference. They always have to match the manifest exactly: a stale annotation would keep its ConfigMap or Secret
// forever.
const referencePrefix = "reference.resources.gardener.cloud/"

// foreignKeys returns the labels and annotations that other clients added and that have to be removed.
func (in applyInput) foreignKeys(manifest *object.Manifest, observation live.Observation) apply.Strip {
	var strip apply.Strip
	if manifest.Directive.Merge {
		return strip
	}
	if in.forceLabels {
		for _, key := range observation.Labels.All() {
			if _, wanted := manifest.Labels[key]; !wanted && !setByKubernetes(key) {
				strip.Labels = append(strip.Labels, key)
			}
		}
	}
	for _, key := range observation.Annotations.All() {
		_, wanted := manifest.Annotations[key]
		wanted = wanted || key == resourcesv1alpha1.AnnotationOrigin || key == resourcesv1alpha1.AnnotationDescription
		forced := in.forceAnnotations && !setByKubernetes(key) && !strings.HasPrefix(key, "loadbalancer.openstack.org")
		if !wanted && (forced || strings.HasPrefix(key, referencePrefix)) {
			strip.Annotations = append(strip.Annotations, key)
		}
	}
	return strip
}

// setByKubernetes reports whether the controllers of Kubernetes would immediately set a label or annotation again.
func setByKubernetes(key string) bool {
	return key == "kubernetes.io/metadata.name" || slices.ContainsFunc(
		[]string{"deployment.kubernetes.io/", "pv.kubernetes.io/", "volume.kubernetes.io/"},
		func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

// pruneInput is the input of the decisions about objects that are no longer wanted.
type pruneInput struct {
	// entries are the recorded objects that are no longer wanted.
	entries   inventory
	live      map[object.Key]live.State
	ownership ownership.Owners
	// deleting is set if the objects are deleted with the ManagedResource, and not because they were removed from the
	// manifests.
	deleting bool
	// finalizeAll is when the finalizers of all objects are removed. It is zero if they are not.
	finalizeAll time.Time
	// managedBy is the value of the managed-by label.
	managedBy string
	// unwantedSince is when each object was removed from the manifests, for objects whose deletion is delayed by delay.
	unwantedSince map[object.Key]time.Time
	delay         time.Duration
	// collectsGarbage is set if the garbage collector is enabled.
	collectsGarbage bool
	now             time.Time
	// abolished are the kinds that are certainly no longer served.
	abolished map[schema.GroupKind]bool
}

// planPrune decides what to do with every object that is no longer wanted.
func planPrune(in pruneInput) []change {
	changes := make([]change, 0, len(in.entries))
	for key, entry := range in.entries {
		state := in.live[key]
		change := in.decide(key, entry, state)
		change.Ref, change.observation = refOfEntry(entry), state.Observation
		changes = append(changes, change)
	}
	return changes
}

func (in pruneInput) decide(key object.Key, entry resourcesv1alpha1.ObjectReference, state live.State) change {
	switch state.Presence {
	case live.Absent:
		return change{action: actionForget, reason: "it is gone"}
	case live.KindNotServed:
		if in.abolished[key.GroupKind()] {
			return change{action: actionForget, reason: "its kind is no longer served"}
		}
		return change{action: actionWait, reason: "its kind is not served at the moment"}
	case live.Unknown:
		return change{action: actionFail, err: errors.Join(errNotRead, state.Err)}
	}

	observation := state.Observation
	owner, _ := resourcesv1alpha1.ParseOrigin(observation.Origin)
	if successors := in.ownership.Successors(key, owner.Owner); len(successors) > 0 {
		return change{action: actionHandOver, successors: successors, reason: fmt.Sprintf("ManagedResource %s wants it, and it is kept until "+
			"that one has it in its inventory", successors[0])}
	}
	if owner, ok := in.ownership.OtherOwner(key, observation); ok {
		return change{action: actionRelease, reason: "it belongs to ManagedResource " + owner}
	}
	switch {
	case in.deleting && observation.Directive.KeepOnDelete || !in.deleting && observation.Directive.KeepOnPrune:
		return change{action: actionRelease, kept: true, reason: "its annotations request this"}
	case !in.ownership.Ours(entry, observation, in.managedBy):
		return change{action: actionRelease, reason: "another client created it again"}
	case in.collectsGarbage && observation.GarbageCollectable && isConfiguration(key):
		return change{action: actionRelease, reason: "the garbage collector deletes it when nothing refers to it"}
	case !observation.Deleting.IsZero():
		return waitForDeletion(observation, in.finalizeAll, in.now)
	}
	if since, waits := in.unwantedSince[key]; waits && in.now.Before(since.Add(in.delay)) {
		return change{action: actionWait, due: since.Add(in.delay), reason: fmt.Sprintf("it was removed from the manifests, "+
			"and is deleted after %s unless another ManagedResource takes it over", in.delay)}
	}
	return change{action: actionDelete, reason: "it is no longer wanted"}
}
