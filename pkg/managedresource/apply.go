package managedresource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apply"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// step is a place in the order of applying: the wave that an object asks for by annotation, then that of its kind.
type step struct {
	asked int
	kind  apply.Wave
}

func compareSteps(a, b step) int {
	return cmp.Or(cmp.Compare(a.asked, b.asked), cmp.Compare(a.kind, b.kind))
}

// compareForDeletion orders steps as their objects are deleted: backwards, but Namespaces before definitions. Both take seconds, which pass at
// once then, and the API server answers slowly while it deletes large definitions.
func compareForDeletion(a, b step) int {
	if order := compareSteps(b, a); a.asked != b.asked || max(a.kind, b.kind) > apply.WaveDefinitions {
		return order
	}
	return compareSteps(a, b)
}

// awaitsEndOf reports whether nothing of a step is deleted before an earlier step of the deletion is gone. Definitions do not wait for
// Namespaces, as they are in none.
func (s step) awaitsEndOf(earlier step) bool {
	return s.asked != earlier.asked || earlier.kind != apply.WaveNamespaces
}

// stepOf returns the place of a manifest. A static token comes after its ServiceAccount: kube-controller-manager deletes one that has none.
func stepOf(manifest *object.Manifest) step {
	wave := apply.WaveOf(manifest.GroupKind())
	if manifest.GroupKind() == (schema.GroupKind{Kind: "Secret"}) && manifest.Annotations[corev1.ServiceAccountNameKey] != "" {
		wave = apply.WaveWorkloads
	}
	return step{manifest.Directive.Wave, wave}
}

// applyWaves applies the manifests wave by wave. Within a wave every object is tried; a failure holds back nothing but
// the custom resources whose definition is missing because of it.
func (p *pass) applyWaves(ctx context.Context) {
	bySteps := map[step][]object.Manifest{}
	for _, manifest := range p.manifests {
		step := stepOf(&manifest)
		bySteps[step] = append(bySteps[step], manifest)
	}
	held, defined := map[schema.GroupKind]heldBack{}, newKinds{}
	for _, step := range slices.SortedFunc(maps.Keys(bySteps), compareSteps) {
		p.awaitKinds(ctx, defined, bySteps[step], held)
		changes := p.applyWave(ctx, bySteps[step], held)
		p.changes = append(p.changes, changes...)
		if step.kind == apply.WaveDefinitions {
			defined.add(changes, held)
			p.recordFreshKinds(changes)
		}
	}
}

// applyWave applies the manifests of one wave. Objects that turn out not to be as the watches show them are looked at and
// decided about once more.
func (p *pass) applyWave(ctx context.Context, manifests []object.Manifest, held map[schema.GroupKind]heldBack) []change {
	changes := p.planWave(ctx, manifests, p.readWanted(ctx, manifests, held), held)
	p.Metrics.detected(changes)
	p.sendWave(ctx, changes)
	var outdated []object.Manifest
	for _, change := range changes {
		if errors.Is(change.err, apply.ErrChanged) {
			outdated = append(outdated, *change.manifest)
		}
	}
	if len(outdated) == 0 {
		return changes
	}
	again := p.planWave(ctx, outdated, p.Live.Fetch(ctx, refsOf(outdated)), held)
	p.sendWave(ctx, again)
	changes = slices.DeleteFunc(changes, func(c change) bool { return errors.Is(c.err, apply.ErrChanged) })
	return append(changes, again...)
}

func (p *pass) planWave(ctx context.Context, manifests []object.Manifest, states map[object.Key]live.State,
	held map[schema.GroupKind]heldBack,
) []change {
	return planApply(applyInput{
		manifests: manifests,
		recorded:  p.recorded,
		live:      states,
		ownership: p.owners.Owners(ctx),
		heldBack:  held,
		always:    p.Options.AlwaysUpdate,
		fights:    func(key object.Key) fight { return p.fights.of(key, p.Clock.Now()) },
		now:       p.Clock.Now(),
		gate:      p.gate,

		unrecorded: func(key object.Key) bool { return p.unrecorded.Has(p.self.Owner, key) },

		forceLabels:      ptr.Deref(p.mr.Spec.ForceOverwriteLabels, false),
		forceAnnotations: ptr.Deref(p.mr.Spec.ForceOverwriteAnnotations, false),
	})
}

// sendWave carries out what is to be sent among the changes.
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
		if outcome.Err == nil {
			p.Live.Note(change.Ref, outcome.Observation)
			p.recordCorrection(change)
			change.takenFrom = change.observation.FormerApplier
		}
		change.observation = outcome.Observation
	}
}

// recordCorrection remembers that an object was put back, if that is what its change did.
func (p *pass) recordCorrection(change *change) {
	if !change.drift || change.unchanged {
		return
	}
	now := p.Clock.Now()
	change.startsFight = p.fights.corrected(change.Key(), change.observation.Writer, now)
	change.fight = p.fights.of(change.Key(), now)
	p.Metrics.corrected(p.self.Owner, change, now)
}

// taskOf returns what the engine has to do about a wanted object.
func taskOf(change *change) (apply.Task, bool) {
	if change.action != actionCreate && change.action != actionApply {
		return apply.Task{}, false
	}
	task := apply.Task{Manifest: *change.manifest, Strip: change.strip, Replace: replaceOf(change.manifest)}
	if change.action == actionApply {
		task.Live = &change.observation
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

// replaceOf returns whether an object is to be replaced when its update is invalid.
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

// isConfiguration reports whether the object is a ConfigMap or a Secret.
func isConfiguration(key object.Key) bool {
	return key.Group == "" && (key.Kind == "ConfigMap" || key.Kind == "Secret")
}
