package managedresource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apply"
	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/fight"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// step is a position in the apply order: first by the sync wave in the annotation of the object, then by the wave of
// its kind.
type step struct {
	annotated int
	kind      apply.Wave
}

func compareSteps(a, b step) int {
	return cmp.Or(cmp.Compare(a.annotated, b.annotated), cmp.Compare(a.kind, b.kind))
}

// compareForDeletion orders steps for the deletion of their objects: in reverse order, except that Namespaces come
// before definitions. Both take seconds, which can then overlap, and the API server answers slowly while it deletes
// large definitions.
func compareForDeletion(a, b step) int {
	if order := compareSteps(b, a); a.annotated != b.annotated || max(a.kind, b.kind) > apply.WaveDefinitions {
		return order
	}
	return compareSteps(a, b)
}

// awaitsEndOf reports whether the deletion of a step has to wait until the objects of an earlier step no longer exist.
// Definitions do not wait for Namespaces, because they are not namespaced.
func (s step) awaitsEndOf(earlier step) bool {
	return s.annotated != earlier.annotated || earlier.kind != apply.WaveNamespaces
}

// stepOf returns the step of a manifest in the order of applying. A static token comes after its ServiceAccount, because
// kube-controller-manager deletes a token without one. Roles come before their bindings.
func stepOf(manifest *object.Manifest) step {
	wave := apply.WaveOf(manifest.GroupKind())
	switch manifest.GroupKind() {
	case schema.GroupKind{Group: rbacv1.GroupName, Kind: "Role"}, schema.GroupKind{Group: rbacv1.GroupName, Kind: "ClusterRole"}:
		wave = apply.WaveRoles
	case schema.GroupKind{Kind: "Secret"}:
		if manifest.Annotations[corev1.ServiceAccountNameKey] != "" {
			wave = apply.WaveWorkloads
		}
	}
	return step{manifest.Directive.Wave, wave}
}

// release releases the recorded objects that request it (mode Ignore). If they still belong to this ManagedResource, it
// removes the labels and annotations of the resource-manager.
func (p *pass) release(ctx context.Context, plan plan) []change {
	var due []object.Ref
	for _, ref := range plan.released {
		if plan.recorded.has(ref.Key()) {
			due = append(due, ref)
		}
	}
	changes := make([]change, 0, len(due))
	if !plan.gate.open() {
		for _, ref := range due {
			changes = append(changes, change{Ref: ref, action: actionHold, reason: plan.gate.reason()})
		}
		return changes
	}
	states := p.Live.Confirm(ctx, due)
	for _, ref := range due {
		changes = append(changes, p.releaseOne(ctx, ref, states[ref.Key()]))
	}
	return changes
}

func (p *pass) releaseOne(ctx context.Context, ref object.Ref, state live.State) change {
	result := change{Ref: ref, action: actionRelease, reason: "its mode is Ignore", observation: state.Observation}
	switch state.Presence {
	case live.Absent:
		result.action, result.reason = actionForget, "it is gone"
	case live.Present:
		if owner, ok := resourcesv1alpha1.ParseOrigin(state.Observation.Origin); ok && owner.Owner == p.self.Owner {
			if result.err = p.engine.Release(ctx, ref, p.self.Owner); result.err == nil {
				p.Live.RecordDeletion(ref, state.Observation.UID) // without the label, watches do not cover it
			}
		}
	default:
		result.err = state.Err
	}
	result.releasing = result.err != nil
	return result
}

// waves is the state of the apply step of a pass.
type waves struct {
	*pass
	plan plan
	// held are the kinds that cannot be applied yet. defined are the kinds of the definitions that were applied in this
	// pass.
	held    map[schema.GroupKind]heldBack
	defined newKinds
	kinds   freshKinds
}

// applyWaves applies the manifests wave by wave. Each object of a wave is applied even if others fail. A failure only
// holds back custom resources whose definition is missing because of it.
func (p *pass) applyWaves(ctx context.Context, plan plan) ([]change, freshKinds) {
	bySteps := map[step][]object.Manifest{}
	for _, manifest := range plan.manifests {
		step := stepOf(&manifest)
		bySteps[step] = append(bySteps[step], manifest)
	}
	w := &waves{
		pass: p, plan: plan, held: map[schema.GroupKind]heldBack{}, defined: newKinds{},
		kinds: freshKinds{fresh: map[schema.GroupKind]bool{}, late: map[schema.GroupKind]bool{}},
	}
	maps.Copy(w.kinds.fresh, plan.lateKinds)
	var all []change
	for _, step := range slices.SortedFunc(maps.Keys(bySteps), compareSteps) {
		if len(w.defined)+len(w.held) > 0 {
			w.awaitKinds(ctx, bySteps[step])
		}
		changes := w.applyWave(ctx, bySteps[step])
		all = append(all, changes...)
		if step.kind == apply.WaveDefinitions {
			w.defined.add(changes, w.held)
			w.kinds.add(changes)
		}
	}
	return all, w.kinds
}

// applyWave applies the manifests of one wave. Objects that differ from what the watches have shown are read again and
// a second decision is made.
func (w *waves) applyWave(ctx context.Context, manifests []object.Manifest) []change {
	changes := w.planWave(ctx, w.plan, manifests, w.readWanted(ctx, manifests), w.held)
	w.Metrics.detected(changes)
	w.sendWave(ctx, changes)
	var outdated []object.Manifest
	for _, change := range changes {
		if errors.Is(change.err, apply.ErrChanged) {
			outdated = append(outdated, *change.manifest)
		}
	}
	if len(outdated) == 0 {
		return changes
	}
	again := w.planWave(ctx, w.plan, outdated, w.Live.Fetch(ctx, refsOf(outdated)), w.held)
	w.sendWave(ctx, again)
	changes = slices.DeleteFunc(changes, func(c change) bool { return errors.Is(c.err, apply.ErrChanged) })
	return append(changes, again...)
}

// readWanted returns the states of wanted objects. Objects of a fresh kind are assumed not to exist. If one does,
// applying it detects this.
func (w *waves) readWanted(ctx context.Context, manifests []object.Manifest) map[object.Key]live.State {
	known := make([]object.Ref, 0, len(manifests))
	for _, ref := range refsOf(manifests) {
		if !w.kinds.fresh[ref.GroupKind()] {
			known = append(known, ref)
		}
	}
	states := w.Live.Read(ctx, known)
	for _, ref := range refsOf(manifests) {
		if w.kinds.fresh[ref.GroupKind()] {
			states[ref.Key()] = live.State{Presence: live.Absent}
		}
	}
	return states
}

// planWave decides what to do with manifests. Held are the kinds that cannot be applied yet.
func (p *pass) planWave(ctx context.Context, plan plan, manifests []object.Manifest, states map[object.Key]live.State,
	held map[schema.GroupKind]heldBack,
) []change {
	return planApply(applyInput{
		manifests: manifests,
		recorded:  plan.recorded,
		live:      states,
		ownership: plan.owners.Owners(ctx),
		heldBack:  held,
		always:    p.Options.AlwaysUpdate,
		requested: p.requested,
		fights:    func(key object.Key) fight.Fight { return p.fights.Of(key, p.Clock.Now()) },
		now:       p.Clock.Now(),
		gate:      plan.gate,

		unrecorded: func(key object.Key) bool { return p.unrecorded.Has(p.self.Owner, key) },

		forceLabels:      ptr.Deref(p.mr.Spec.ForceOverwriteLabels, false),
		forceAnnotations: ptr.Deref(p.mr.Spec.ForceOverwriteAnnotations, false),
	})
}

// sendWave sends the changes that create or apply objects, and records their results.
func (p *pass) sendWave(ctx context.Context, changes []change) {
	var tasks []apply.Task
	var due []*change
	for i := range changes {
		if task, ok := taskOf(&changes[i]); ok {
			tasks, due = append(tasks, task), append(due, &changes[i])
			p.unrecorded.Add(p.self.Owner, changes[i].Key())
		}
	}
	for i, outcome := range p.engine.Apply(ctx, tasks) {
		change := due[i]
		change.err, change.dropped = outcome.Err, outcome.Dropped
		change.unchanged = change.observation.ResourceVersion == outcome.Observation.ResourceVersion
		change.completed = change.completed && change.observation.UID == outcome.Observation.UID // not if it was replaced
		if outcome.Err == nil {
			p.Live.RecordWrite(change.Ref, outcome.Observation)
			p.recordCorrection(change)
			change.takenFrom = change.observation.FormerApplier
		}
		change.observation = outcome.Observation
	}
}

// recordCorrection records the correction of an object, if the change was one.
func (p *pass) recordCorrection(change *change) {
	if !change.drift || change.unchanged {
		return
	}
	now := p.Clock.Now()
	if change.action == actionCreate {
		change.startsFight = p.fights.ObserveDeletion(change.Key(), now)
	} else {
		change.startsFight = p.fights.Observe(change.Key(), "", change.observation.Writer, now)
		change.removed = fieldowner.PathsBeyond(change.observation.TakeOverCandidates, untakenOf(change.manifest))
	}
	change.fight = p.fights.Of(change.Key(), now)
	p.Metrics.corrected(p.self.Owner, change, now)
}

// endFights ends the fights over objects that are no longer managed, whose manifest or ManagedResource has changed since
// the last correction, or that must not be corrected. If the other client still writes, a new fight begins.
func (p *pass) endFights(changes []change) {
	respecified := p.mr.Status.ObservedGeneration != p.mr.Generation
	for i := range changes {
		change := &changes[i]
		gone := change.manifest == nil && (change.action == actionDelete || change.action == actionForget || change.action == actionRelease)
		left := change.action == actionSkip && (respecified || change.observation.Directive.Suspend)
		if change.err == nil && (gone || left || change.revised && change.action == actionApply) {
			p.fights.Forget(change.Key())
			change.fight = fight.Fight{}
		}
	}
}

// taskOf returns the task of the engine for the change of a wanted object. It returns false if the change sends
// nothing.
func taskOf(change *change) (apply.Task, bool) {
	if change.action != actionCreate && change.action != actionApply {
		return apply.Task{}, false
	}
	task := apply.Task{Manifest: *change.manifest, Strip: change.strip, Replace: replaceOf(change.manifest)}
	if change.action == actionApply {
		task.Live, task.Revised = &change.observation, change.revised
	}
	return task, true
}

func refsOf(manifests []object.Manifest) []object.Ref {
	refs := make([]object.Ref, 0, len(manifests))
	for _, manifest := range manifests {
		refs = append(refs, manifest.Ref)
	}
	return refs
}

func refsOfEntries(entries inventory) []object.Ref {
	refs := make([]object.Ref, 0, len(entries))
	for _, entry := range entries {
		refs = append(refs, refOfEntry(entry))
	}
	return refs
}

// replaceOf returns how an object is replaced if its update is invalid.
func replaceOf(manifest *object.Manifest) apply.Replace {
	replace := apply.Replace{
		Allowed:   manifest.Directive.Replace,
		Immutable: isConfiguration(manifest.Key()),
	}
	const key = resourcesv1alpha1.AnnotationDeletionPropagationOnInvalidUpdate
	switch policy := metav1.DeletionPropagation(manifest.Annotations[key]); policy {
	case "":
	case metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan:
		replace.Propagation = &policy
	default:
		replace.Err = fmt.Errorf("invalid deletion propagation policy: annotation %s is %q, use Background, Foreground or Orphan", key, policy)
	}
	return replace
}

// isConfiguration reports whether an object is a ConfigMap or a Secret.
func isConfiguration(key object.Key) bool {
	return key.Group == "" && (key.Kind == "ConfigMap" || key.Kind == "Secret")
}
