package flow

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/references"
)

// Action is an operation on a bundle.
type Action string

// The actions.
const (
	// ActionCreate writes the Secrets and the ManagedResource of a bundle that does not exist.
	ActionCreate Action = "Create"
	// ActionUpdate writes those of a bundle that exists.
	ActionUpdate Action = "Update"
	// ActionRestore recreates deleted Secrets of a bundle that is otherwise up to date.
	ActionRestore Action = "Restore"
	// ActionRecord records the digest of the inputs on a bundle that is up to date.
	ActionRecord Action = "Record"
	// ActionConfirm writes a revision of a bundle whose objects have the deletion confirmation annotation.
	ActionConfirm Action = "Confirm"
	// ActionDelete deletes a ManagedResource.
	ActionDelete Action = "Delete"
	// ActionRelease ends the deletion of a ManagedResource that would wait for others that are not deleted.
	ActionRelease Action = "Release"
	// ActionKeepObjects writes a revision of a ManagedResource that keeps its objects when it is deleted.
	ActionKeepObjects Action = "KeepObjects"
	// ActionHandOver removes the labels of the flow from a ManagedResource.
	ActionHandOver Action = "HandOver"
	// ActionAdopt writes the Secrets and the ManagedResource of a bundle that another flow has released.
	ActionAdopt Action = "Adopt"
)

// Step is one operation on one bundle.
type Step struct {
	Action Action
	Key    Key
	Reason string

	revision *revision
	// uid is the UID of the observed ManagedResource, empty if it does not exist.
	uid types.UID
	// emission is recorded on the ManagedResource.
	emission emission
	// force adds AnnotationForceDeletion to the objects. migrate requests the operation migrate, unless it is zero.
	force   bool
	migrate time.Time
	// inPlace confirms the deletion on the objects themselves, because the ManagedResource cannot apply a revision any more.
	inPlace bool
	// resourceVersion is the only one in which the ManagedResource may be deleted, empty for any. A resource-manager writes
	// the inventory before it applies an object.
	resourceVersion string
}

// Decision contains the steps that bring the live objects to the state that a plan wants.
type Decision struct {
	// Steps in the order of their execution.
	Steps []Step
	// Held are the bundles that keep their current revision, with the reason.
	Held map[Key]string
	// Pending are the bundles that wait for an event that a watch reports, with its description.
	Pending map[Key]string
	// Problems are the bundles that cannot reach the state that the plan wants, with the reason.
	Problems map[Key]string
	// Unmentioned are the existing bundles that the plan does not want, hold or delete. They are kept.
	Unmentioned []Key

	// compiled are the bundles of the plan that could be encoded.
	compiled map[Key]*revision
}

// Rules apply to every decision, whatever the plan contains.
type Rules struct {
	Scheme *runtime.Scheme
	// Protected are the kinds whose objects may leave a bundle only if [Bundle.Removes] lists them.
	Protected []schema.GroupKind
	// Version of the program.
	Version string
}

// DefaultProtected returns the kinds whose deletion destroys a cluster.
func DefaultProtected() []schema.GroupKind {
	return []schema.GroupKind{
		{Kind: "Namespace"},
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"},
		{Group: "druid.gardener.cloud", Kind: "Etcd"},
		{Group: "extensions.gardener.cloud", Kind: "Infrastructure"},
		{Group: "extensions.gardener.cloud", Kind: "Worker"},
	}
}

// Decide compares a plan with the live objects. It is pure. It returns an error if the plan is invalid. In this case no
// part of the plan may be emitted.
func Decide(owner Owner, plan Plan, live Live, rules Rules) (Decision, error) {
	if owner.UID == "" || owner.Flow == "" {
		return Decision{}, fmt.Errorf("the owner %s has no UID or no flow, which identify its bundles", owner)
	}
	if err := plan.Validate(); err != nil {
		return Decision{}, fmt.Errorf("the plan of %s %s is inconsistent: %w", owner.Flow, owner, err)
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
	for _, key := range plan.Keeps {
		d.keep(key)
	}
	d.findUnmentioned()
	return d.Decision, nil
}

type decider struct {
	owner Owner
	plan  Plan
	live  Live
	rules Rules
	// emission is recorded by the steps. Repairs while the whole plan is held belong to the last emission.
	emission emission
	Decision
}

// bundle decides on one bundle of the plan. It must be called for the dependencies of the bundle first.
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
	released := isReleased(mr)
	switch {
	case mr != nil && !d.owner.owns(mr.Labels) && !released:
		d.Problems[key] = foreign(mr)
	case mr != nil && mr.DeletionTimestamp != nil:
		d.Pending[key] = "it is being deleted and will be created again afterwards"
		if !held && (!d.plan.Deleting || slices.Contains(d.plan.Recreated, key)) && !ptr.Deref(mr.Spec.KeepObjects, false) {
			// It was deleted by hand. Its dependents stay, so that the resource-manager would wait for them forever.
			d.step(ActionRelease, r, mr, "it is being deleted, but the plan has it")
		}
	case mr != nil && !released && d.settled(r, mr):
		if missing := d.live.missing(mr); len(missing) > 0 {
			d.step(ActionRestore, r, mr, "the Secrets "+strings.Join(missing, ", ")+" do not exist")
		}
	case held && mr != nil && !released && len(d.live.missing(mr)) > 0:
		d.Problems[key] = fmt.Sprintf("the Secrets %s of the current revision do not exist, and the plan holds the bundle in this revision: %s",
			strings.Join(d.live.missing(mr), ", "), d.Held[key])
	case held:
	case (mr == nil || released) && d.plan.Deleting && !slices.Contains(d.plan.Recreated, key):
		d.Held[key] = "no bundle is created while the owner is being deleted"
	case d.blockedBy(bundle) != "":
		d.Pending[key] = d.blockedBy(bundle)
	case d.circle(bundle) != nil:
		d.Pending[key] = "these would wait for each other until all have their new order: " + joinKeys(d.circle(bundle))
	case mr == nil:
		d.step(ActionCreate, r, mr, "it does not exist")
	case d.unprotected(r, mr) != "":
		d.Problems[key] = d.unprotected(r, mr)
	case released:
		d.step(ActionAdopt, r, mr, "another flow has released it")
	default:
		d.step(ActionUpdate, r, mr, "the plan has changed")
	}
}

// keep decides on a bundle that stays as it is.
func (d *decider) keep(key Key) {
	mr := d.live.ManagedResources[key]
	if mr == nil || !d.owner.owns(mr.Labels) {
		return
	}
	if missing := d.live.missing(mr); len(missing) > 0 {
		d.Problems[key] = fmt.Sprintf("the Secrets %s of its revision do not exist, and the plan keeps the bundle in this revision", strings.Join(missing, ", "))
	}
	if mr.DeletionTimestamp != nil {
		d.Pending[key] = "it is being deleted, although the plan keeps it"
	}
}

func foreign(mr *resourcesv1alpha1.ManagedResource) string {
	by := cmp.Or(mr.Labels[LabelFlow], "another owner")
	return fmt.Sprintf("ManagedResource %s exists and belongs to %s: delete it or rename the bundle", keyOf(mr), by)
}

func (d *decider) step(action Action, r *revision, mr *resourcesv1alpha1.ManagedResource, reason string) {
	step := Step{Action: action, Key: r.bundle.Key, Reason: reason, revision: r, emission: d.emission}
	if mr != nil {
		step.uid = mr.UID
	}
	d.Steps = append(d.Steps, step)
}

// settled reports whether a ManagedResource already matches the revision. It ignores missing Secrets.
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

// blockedBy returns why a dependency keeps a bundle from being written even though the plan does not hold it, empty if
// none does. The old revision of the dependency would satisfy the dependency of the new bundle.
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

// unprotected returns an error text if a revision would remove objects of protected kinds that [Bundle.Removes] does
// not list.
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
	return "the new revision would delete the protected objects " + strings.Join(lost, ", ") + ", which the plan does not list as removed"
}

// recordInputs records the digest of the inputs if it has changed and no other step records it. Later plans use it to
// distinguish code changes from input changes.
func (d *decider) recordInputs(ordered []Bundle) {
	if d.plan.Inputs == "" || d.heldAll() != "" || lastEmission(d.live.owned(d.owner)).digest == d.plan.Inputs {
		return
	}
	if slices.ContainsFunc(d.Steps, func(step Step) bool {
		return slices.Contains([]Action{ActionCreate, ActionUpdate, ActionAdopt}, step.Action)
	}) {
		return
	}
	for _, bundle := range ordered {
		mr, r := d.live.ManagedResources[bundle.Key], d.compiled[bundle.Key]
		if mr != nil && r != nil && d.owner.owns(mr.Labels) && mr.DeletionTimestamp == nil && d.settled(r, mr) && len(d.live.missing(mr)) == 0 {
			d.step(ActionRecord, r, mr, "only the inputs have changed")
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
	for _, key := range d.plan.Keeps {
		mentioned[key] = "kept"
	}
	for _, mr := range d.live.owned(d.owner) {
		if mentioned[keyOf(mr)] == "" {
			d.Unmentioned = append(d.Unmentioned, keyOf(mr))
		}
	}
}
