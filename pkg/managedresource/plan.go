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

// plan is what a pass sets out to do: what it works from, with an inventory that has all that is applied, and what changes wait for.
type plan struct {
	input
	// baseline is how many objects the inventory held before objects left the manifests. The share of the prune guard refers to it.
	baseline int
	gate     gate
	// deletionOrder says which ManagedResources a deletion does not wait for.
	deletionOrder deletionOrder
}

// action is what is done about one object.
type action string

const (
	// actionCreate applies an object that does not exist.
	actionCreate action = "Create"
	// actionApply applies an object that exists.
	actionApply action = "Apply"
	// actionSkip sends nothing: the object is as it was applied.
	actionSkip action = "Skip"
	// actionDelete deletes an object that is no longer wanted.
	actionDelete action = "Delete"
	// actionForget takes an object that is gone out of the inventory.
	actionForget action = "Forget"
	// actionRelease takes an object out of the inventory and leaves it alone.
	actionRelease action = "Release"
	// actionHandOver takes an object out of the inventory once it is in that of a successor.
	actionHandOver action = "HandOver"
	// actionWait leaves the object for a later reconcile.
	actionWait action = "Wait"
	// actionHold leaves a change for when the dependencies are ready.
	actionHold action = "Hold"
	// actionConflict leaves the object to the ManagedResource that owns it.
	actionConflict action = "Conflict"
	// actionFail cannot do what is wanted.
	actionFail action = "Fail"
)

// change is the decision about one object and, once it was carried out, its result.
type change struct {
	object.Ref
	action action
	// reason says why, for people.
	reason string
	// manifest is set for objects that are wanted.
	manifest *object.Manifest
	// observation is the object before and, if it was applied, after the change.
	observation live.Observation
	// strip are labels and annotations of others that go.
	strip apply.Strip
	// finalize has the finalizers of an object that is being deleted removed.
	finalize bool
	// drift is set if the object is not as it was applied, though its manifest is what it was.
	drift bool
	// revised is set if the manifest is certainly another one than the last one that was applied.
	revised bool
	// fight is what is remembered of former drift.
	fight fight.Fight
	// startsFight is set if this correction was one too many.
	startsFight bool
	// releasing is set if the object could not be released.
	releasing bool
	// successors are the ManagedResources that may get the object.
	successors []types.NamespacedName
	// dropped are the paths of fields that the API server does not know, and without which the object was applied.
	dropped []string
	// takenFrom is the field manager that applied the object for a ManagedResource before, if its origin is the only sign of that.
	takenFrom string
	// unchanged is set if the object was applied without effect.
	unchanged bool
	// due is when to check a change that waits; zero if its end is an event.
	due time.Time
	// err says why the change was not carried out.
	err error
}

// applyInput is what the decisions about wanted objects rest on.
type applyInput struct {
	manifests []object.Manifest
	recorded  inventory
	live      map[object.Key]live.State
	ownership ownership.Owners
	// heldBack are the kinds whose CustomResourceDefinition of the same ManagedResource is not there yet, with the
	// reason.
	heldBack map[schema.GroupKind]heldBack
	// force removes labels and annotations that others added.
	forceLabels, forceAnnotations bool
	// always applies objects even if nothing changed. Asked does the same once, for the operation "reconcile".
	always, asked bool
	// fights returns what is remembered of former drift; nil if that does not matter.
	fights func(object.Key) fight.Fight
	// now is the present time.
	now time.Time
	// gate holds back changes.
	gate gate
	// unrecorded reports whether an object may have been written since the inventory was stored, so that its digest proves nothing; nil if
	// none was.
	unrecorded func(object.Key) bool
}

// planApply decides about every wanted object.
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

// errNotRead marks objects about which nothing can be decided.
var errNotRead = errors.New("the live object cannot be read")

func (in applyInput) decidePresent(manifest *object.Manifest, observation live.Observation) change {
	key := manifest.Key()
	if owner, ok := in.ownership.OtherOwner(key, observation); ok {
		return conflict(key, owner)
	}
	if !observation.Deleting.IsZero() {
		return change{action: actionWait, reason: "it is being deleted; it is created again once it is gone"}
	}
	if manifest.Directive.CreateOnly || observation.Directive.Suspend {
		return change{action: actionSkip, reason: "its annotations ask for it"}
	}
	strip := in.foreignKeys(manifest, observation)
	digest := digestOf(*manifest, observation)
	recorded := in.recorded[key].Digest
	switch drift := in.undoesDrift(manifest); {
	case in.asked:
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
	case fieldowner.Beyond(observation.TakeOverCandidates, slices.Concat(manifest.Preserve, manifest.PreserveIfSet, manifest.Untaken)):
		return change{action: actionApply, drift: drift, reason: "another client added fields to it", strip: strip}
	case len(strip.Labels) > 0 || len(strip.Annotations) > 0:
		return change{action: actionApply, drift: drift, reason: "another client added labels or annotations to it", strip: strip}
	case manifest.ReplicasFromZero != nil && observation.Replicas.Zero():
		return change{action: actionApply, drift: drift, reason: "it has 0 replicas, from which its autoscaler does not scale"}
	}
	return change{action: actionSkip, reason: "nothing changed"}
}

// undoesDrift reports whether a manifest that has to be applied is the one that was applied last: then someone else changed the object.
func (in applyInput) undoesDrift(manifest *object.Manifest) bool {
	return sentDigest(in.recorded[manifest.Key()]) == manifest.Digest && !in.isUnrecorded(manifest.Key())
}

func (in applyInput) isUnrecorded(key object.Key) bool {
	return in.unrecorded != nil && in.unrecorded(key)
}

// appliedByOther reports whether another ManagedResource was the last one to apply an object. It may have sent the same fields, so that
// digests do not show it.
func (in applyInput) appliedByOther(observation live.Observation) bool {
	origin, ok := resourcesv1alpha1.ParseOrigin(observation.Origin)
	return ok && origin.Owner != in.ownership.Self.Owner
}

// delayIfFighting delays the correction of an object that another client keeps changing, the longer the more often it was corrected.
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

// conflict leaves an object to its owner. It is not tried again until the owner lets go of the object, which wakes all that
// claim it, or the sync period is over.
func conflict(key object.Key, owner string) change {
	return change{action: actionConflict, err: apply.Permanent(fmt.Errorf("%s belongs to ManagedResource %s, which keeps it: "+
		"remove it from one of the two", key, owner))}
}

// referencePrefix begins the annotations that keep the garbage collector from deleting what an object refers to. They
// are always exactly those of the manifest: a stale one would keep its ConfigMap or Secret forever.
const referencePrefix = "reference.resources.gardener.cloud/"

// foreignKeys returns the labels and annotations that others added and that are to go.
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

// setByKubernetes reports whether Kubernetes' own controllers would set a label or annotation again at once.
func setByKubernetes(key string) bool {
	return key == "kubernetes.io/metadata.name" || slices.ContainsFunc(
		[]string{"deployment.kubernetes.io/", "pv.kubernetes.io/", "volume.kubernetes.io/"},
		func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

// pruneInput is what the decisions about objects that are no longer wanted rest on.
type pruneInput struct {
	// entries are the recorded objects that are no longer wanted.
	entries   inventory
	live      map[object.Key]live.State
	ownership ownership.Owners
	// deleting is set if the objects go because of the ManagedResource, not because they left it.
	deleting bool
	// finalizeAll is when the finalizers of all objects are removed; zero if never.
	finalizeAll time.Time
	// managedBy is the value of the managed-by label.
	managedBy string
	// departed says since when an object is not wanted any more, for those that wait for delay before they are deleted.
	departed map[object.Key]time.Time
	delay    time.Duration
	// collectsGarbage is set if the garbage collector is enabled.
	collectsGarbage bool
	// now is the present time.
	now time.Time
	// abolished are the kinds that the API server certainly does not serve any more.
	abolished map[schema.GroupKind]bool
}

// planPrune decides about every object that is no longer wanted.
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
		return change{action: actionWait, reason: "its kind cannot be reached"}
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
		return change{action: actionRelease, reason: "its annotations ask for it"}
	case !in.ownership.Ours(entry, observation, in.managedBy):
		return change{action: actionRelease, reason: "another client created it again"}
	case in.collectsGarbage && observation.GarbageCollectable && isConfiguration(key):
		return change{action: actionRelease, reason: "the garbage collector deletes it when nothing refers to it"}
	case !observation.Deleting.IsZero():
		return waitForDeletion(observation, in.finalizeAll, in.now)
	}
	if since, waits := in.departed[key]; waits && in.now.Before(since.Add(in.delay)) {
		return change{action: actionWait, due: since.Add(in.delay), reason: fmt.Sprintf("it left the manifests, and is "+
			"deleted after %s unless another ManagedResource takes it over", in.delay)}
	}
	return change{action: actionDelete, reason: "it is no longer wanted"}
}
