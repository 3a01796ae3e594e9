package flow

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/references"
)

// Action is what is done to a bundle.
type Action string

// The actions.
const (
	// ActionCreate writes the Secrets and the ManagedResource of a bundle that does not exist.
	ActionCreate Action = "Create"
	// ActionUpdate writes those of a bundle that exists.
	ActionUpdate Action = "Update"
	// ActionRestore writes Secrets that were deleted, of a bundle that is otherwise as it should be.
	ActionRestore Action = "Restore"
	// ActionRecord writes down the inputs on a bundle that is as it should be.
	ActionRecord Action = "Record"
	// ActionConfirm writes a revision of a bundle in which the objects confirm their deletion.
	ActionConfirm Action = "Confirm"
	// ActionDelete deletes a ManagedResource.
	ActionDelete Action = "Delete"
)

// Step is one bundle that is written or deleted.
type Step struct {
	Action Action
	Key    Key
	Reason string

	revision *revision
	// uid is that of the ManagedResource that was seen; empty if none was.
	uid types.UID
	// emission is what is noted on the ManagedResource.
	emission emission
	// force is set if the objects are to be annotated with AnnotationForceDeletion.
	force bool
}

// Decision is what has to be done so that a plan is what lives.
type Decision struct {
	// Steps in the order in which they are taken.
	Steps []Step
	// Held are bundles that keep their revision, with the reason.
	Held map[Key]string
	// Pending are bundles that wait for something that a watch will show, with its description.
	Pending map[Key]string
	// Problems are bundles that cannot be what the plan wants, with the reason.
	Problems map[Key]string
	// Unmentioned are bundles that live, and that the plan neither wants, holds nor deletes. They are kept.
	Unmentioned []Key

	// compiled are the bundles of the plan that can be encoded.
	compiled map[Key]*revision
}

// Rules are what a decision keeps to, whatever a plan says.
type Rules struct {
	Scheme *runtime.Scheme
	// Protected are the kinds whose objects leave a bundle only if [Bundle.Removes] names them.
	Protected []schema.GroupKind
	// Version of the program.
	Version string
}

// DefaultProtected returns the kinds whose loss destroys a cluster.
func DefaultProtected() []schema.GroupKind {
	return []schema.GroupKind{
		{Kind: "Namespace"},
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"},
		{Group: "druid.gardener.cloud", Kind: "Etcd"},
		{Group: "extensions.gardener.cloud", Kind: "Infrastructure"},
		{Group: "extensions.gardener.cloud", Kind: "Worker"},
	}
}

// Decide compares a plan with what lives. It is pure. The error says what is wrong with the plan; nothing of it is emitted then.
func Decide(owner Owner, plan Plan, live Live, rules Rules) (Decision, error) {
	if owner.UID == "" || owner.Flow == "" {
		return Decision{}, fmt.Errorf("the owner %s has no UID or no flow: without them its bundles cannot be distinguished from others", owner)
	}
	if err := plan.Validate(); err != nil {
		return Decision{}, fmt.Errorf("the plan of %s %s contradicts itself: %w", owner.Flow, owner, err)
	}
	d := &decider{owner: owner, plan: plan, live: live, rules: rules, Decision: Decision{
		Held: plan.held(), Pending: map[Key]string{}, Problems: map[Key]string{}, compiled: map[Key]*revision{},
	}}
	ordered, err := writeOrder(plan.Bundles)
	if err != nil {
		return Decision{}, err
	}
	if d.emission = lastEmission(live.owned(owner)); d.heldAll() == "" || d.emission.digest == "" {
		d.emission = d.emission.next(plan, rules.Version)
	}
	for _, bundle := range ordered {
		d.bundle(bundle)
	}
	d.recordInputs(ordered)
	for _, tombstone := range plan.Tombstones {
		d.tombstone(tombstone)
	}
	d.findUnmentioned()
	return d.Decision, nil
}

type decider struct {
	owner Owner
	plan  Plan
	live  Live
	rules Rules
	// emission is that of the steps. What is repaired while the whole plan is held belongs to the last one.
	emission emission
	Decision
}

// bundle decides on a bundle of the plan. Those that it depends on have been decided on.
func (d *decider) bundle(bundle Bundle) {
	key := bundle.Key
	r, err := compile(bundle, d.rules.Scheme)
	if err != nil {
		d.Problems[key] = err.Error()
		return
	}
	d.compiled[key] = r
	mr := d.live.ManagedResources[key]
	_, held := d.Held[key]
	switch {
	case mr != nil && !d.owner.owns(mr.Labels):
		d.Problems[key] = foreign(mr)
	case mr != nil && mr.DeletionTimestamp != nil:
		d.Pending[key] = "it is being deleted, and is created again when it is gone"
	case mr != nil && d.settled(r, mr):
		if missing := d.live.missing(mr); len(missing) > 0 {
			d.step(ActionRestore, r, mr, "the Secrets "+strings.Join(missing, ", ")+" do not exist")
		}
	case held && mr != nil && len(d.live.missing(mr)) > 0:
		d.Problems[key] = fmt.Sprintf("the Secrets %s do not exist, and the plan holds the bundle in the revision that they hold: %s",
			strings.Join(d.live.missing(mr), ", "), d.Held[key])
	case held:
	case mr == nil && d.plan.Deleting:
		d.Held[key] = "nothing is created while the owner is being deleted"
	case d.blockedBy(bundle) != "":
		d.Pending[key] = d.blockedBy(bundle)
	case mr == nil:
		d.step(ActionCreate, r, mr, "it does not exist")
	case d.unprotected(r, mr) != "":
		d.Problems[key] = d.unprotected(r, mr)
	default:
		d.step(ActionUpdate, r, mr, "the plan has changed")
	}
}

func foreign(mr *resourcesv1alpha1.ManagedResource) string {
	by := cmp.Or(mr.Labels[LabelFlow], "another owner")
	return fmt.Sprintf("ManagedResource %s exists and belongs to %s: it is not touched; delete it or rename the bundle", keyOf(mr), by)
}

func (d *decider) step(action Action, r *revision, mr *resourcesv1alpha1.ManagedResource, reason string) {
	step := Step{Action: action, Key: r.bundle.Key, Reason: reason, revision: r, emission: d.emission}
	if mr != nil {
		step.uid = mr.UID
	}
	d.Steps = append(d.Steps, step)
}

// settled reports whether a ManagedResource is what emitting the revision would make of it, but for Secrets that may be missing.
func (d *decider) settled(r *revision, mr *resourcesv1alpha1.ManagedResource) bool {
	content, names, _ := strings.Cut(mr.Annotations[AnnotationDigest], ".")
	spec := mr.Spec
	spec.SecretRefs = nil
	if content != r.content || names != digestOfNames(mr.Spec.SecretRefs) || !equality.Semantic.DeepEqual(spec, r.bundle.Spec) {
		return false
	}
	for name, value := range r.bundle.Labels {
		if mr.Labels[name] != value {
			return false
		}
	}
	for _, reference := range mr.Spec.SecretRefs {
		if mr.Annotations[references.AnnotationKey(references.KindSecret, reference.Name)] != reference.Name {
			return false
		}
	}
	return mr.Annotations[AnnotationConfirmed] == ""
}

// blockedBy says which dependency keeps a bundle from being written though the plan does not hold it: its old revision would open the way
// for this one.
func (d *decider) blockedBy(bundle Bundle) string {
	for _, key := range dependencies(bundle.Namespace, bundle.Spec) {
		for _, why := range []string{d.Problems[key], d.Pending[key]} {
			if why != "" {
				return fmt.Sprintf("it depends on %s, which cannot be written: %s", key, why)
			}
		}
	}
	return ""
}

// unprotected says which objects of protected kinds a revision would remove though it does not name them.
func (d *decider) unprotected(r *revision, mr *resourcesv1alpha1.ManagedResource) string {
	var lost []string
	for _, entry := range mr.Status.Resources {
		key := inventoryKey(entry)
		if slices.Contains(d.rules.Protected, key.GroupKind()) && !slices.Contains(r.keys, key) && !slices.Contains(r.bundle.Removes, key) {
			lost = append(lost, key.String())
		}
	}
	if len(lost) == 0 {
		return ""
	}
	return "the new revision would delete " + strings.Join(lost, ", ") + ", which the plan does not declare as removed"
}

// recordInputs writes down the inputs if they have changed and no other step does so: later it distinguishes changes of the code from others.
func (d *decider) recordInputs(ordered []Bundle) {
	if d.plan.Inputs == "" || d.heldAll() != "" || lastEmission(d.live.owned(d.owner)).digest == d.plan.Inputs {
		return
	}
	if slices.ContainsFunc(d.Steps, func(step Step) bool { return step.Action == ActionCreate || step.Action == ActionUpdate }) {
		return
	}
	for _, bundle := range ordered {
		mr, r := d.live.ManagedResources[bundle.Key], d.compiled[bundle.Key]
		if mr != nil && r != nil && d.owner.owns(mr.Labels) && mr.DeletionTimestamp == nil && d.settled(r, mr) && len(d.live.missing(mr)) == 0 {
			d.step(ActionRecord, r, mr, "the inputs have changed, and nothing else")
			return
		}
	}
}

func (d *decider) findUnmentioned() {
	mentioned := maps.Clone(d.Held)
	for _, bundle := range d.plan.Bundles {
		mentioned[bundle.Key] = "wanted"
	}
	for _, tombstone := range d.plan.Tombstones {
		mentioned[tombstone.Key] = "deleted"
	}
	for _, mr := range d.live.owned(d.owner) {
		if mentioned[keyOf(mr)] == "" {
			d.Unmentioned = append(d.Unmentioned, keyOf(mr))
		}
	}
}
