package managedresource

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apply"
	"github.com/trellis-k8s/trellis/pkg/applyoptions"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/manifest"
	"github.com/trellis-k8s/trellis/pkg/object"
	"github.com/trellis-k8s/trellis/pkg/ownership"
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
			p.noteFreshKinds(changes)
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
		contests:  func(key object.Key) contest { return p.contests.of(key, p.Clock.Now()) },
		now:       p.Clock.Now(),
		gate:      p.gate,

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
		}
	}
	for i, outcome := range p.engine.Apply(ctx, tasks) {
		change := due[i]
		change.err, change.dropped = outcome.Err, outcome.Dropped
		change.unchanged = change.observation.ResourceVersion == outcome.Observation.ResourceVersion
		if outcome.Err == nil {
			p.Live.Note(change.Ref, outcome.Observation)
			p.noteCorrection(change)
			change.takenFrom = change.observation.FormerApplier
		}
		change.observation = outcome.Observation
	}
}

// noteCorrection remembers that an object was put back, if that is what its change did.
func (p *pass) noteCorrection(change *change) {
	if !change.drift || change.unchanged {
		return
	}
	now := p.Clock.Now()
	change.opensContest = p.contests.corrected(change.Key(), change.observation.Writer, now)
	change.contest = p.contests.of(change.Key(), now)
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

// unwanted returns the recorded objects that are in no manifest. It is empty while a manifest cannot be read: what is in
// there could be what is missing.
func (p *pass) unwanted() inventory {
	if len(p.problems) > 0 {
		return nil
	}
	return p.outsideManifests(p.recorded)
}

// outsideManifests returns the objects of an inventory that are in none of the manifests that could be read.
func (p *pass) outsideManifests(recorded inventory) inventory {
	equivalences := manifest.NewEquivalences(p.mr.Spec.Equivalences)
	wanted := map[object.Key]bool{}
	for _, ref := range slices.Concat(refsOf(p.manifests), p.coveted, p.released) {
		wanted[equivalences.Identity(ref.Key())] = true
	}
	unwanted := inventory{}
	for key, entry := range recorded {
		if !wanted[equivalences.Identity(key)] {
			unwanted[key] = entry
		}
	}
	return unwanted
}

// pruneUnwanted deletes what is in no manifest any more, after a moment in which another ManagedResource may take it over.
func (p *pass) pruneUnwanted(ctx context.Context) {
	unwanted := p.unwanted()
	if !p.gate.open() {
		p.prune(ctx, unwanted) // which disowns it: a dependency may take it over, and wait for that
		return
	}
	p.departed = p.pruneDelays.Update(p.self.Owner, slices.Collect(maps.Keys(unwanted)), p.started)
	if len(unwanted) > 0 {
		p.delay = p.pruneDelay(ctx)
	}
	p.prune(ctx, p.guard(ctx, unwanted))
}

// prune deletes objects in the order of compareForDeletion. A step begins only when the earlier ones that hold it up are gone. What another
// ManagedResource gets holds nothing up.
func (p *pass) prune(ctx context.Context, entries inventory) {
	p.claims.Disown(p.self.Owner, slices.Collect(maps.Keys(entries)))
	bySteps := map[step]inventory{}
	for key, entry := range entries {
		step := step{applyoptions.Of(entry.Annotations).Wave, apply.WaveOf(key.GroupKind())}
		if bySteps[step] == nil {
			bySteps[step] = inventory{}
		}
		bySteps[step][key] = entry
	}
	var pending []step
	for _, step := range slices.SortedFunc(maps.Keys(bySteps), compareForDeletion) {
		if slices.ContainsFunc(pending, step.awaitsEndOf) {
			continue
		}
		changes := p.pruneWave(ctx, bySteps[step])
		p.changes = append(p.changes, changes...)
		if slices.ContainsFunc(changes, func(c change) bool { return c.action == actionWait || c.err != nil }) {
			pending = append(pending, step)
		}
	}
}

// pruneWave deletes the objects of one wave. Objects that turn out not to be as the watches show them are looked at and
// decided about once more.
func (p *pass) pruneWave(ctx context.Context, entries inventory) []change {
	changes := p.planPruning(ctx, entries, p.Live.Confirm(ctx, refsOfEntries(entries)))
	outdated := p.delete(ctx, changes)
	if len(outdated) == 0 {
		return changes
	}
	again := inventory{}
	for _, change := range outdated {
		again[change.Key()] = entries[change.Key()]
	}
	changes = slices.DeleteFunc(changes, func(c change) bool { _, decided := again[c.Key()]; return decided })
	second := p.planPruning(ctx, again, p.Live.Fetch(ctx, refsOfEntries(again)))
	for _, change := range p.delete(ctx, second) {
		change.action, change.reason = actionWait, "it changed just before its deletion"
	}
	return append(changes, second...)
}

func (p *pass) planPruning(ctx context.Context, entries inventory, states map[object.Key]live.State) []change {
	changes := planPrune(pruneInput{
		entries:   entries,
		live:      states,
		ownership: p.owners.Owners(ctx),
		managedBy: p.Options.ManagedBy,
		abolished: p.abolished(ctx, states),

		deleting: p.duty == dutyCleanUp, departed: p.departed, delay: p.delay,
		collectsGarbage: p.Options.CollectsGarbage,
		now:             p.Clock.Now(),
	})
	p.gate.hold(changes, p.recorded)
	p.handOver(ctx, changes)
	if p.guarded != nil { // what was not to be deleted a moment ago may be by now
		changes = slices.DeleteFunc(changes, func(c change) bool { return c.action == actionDelete })
	}
	return changes
}

// handOver releases the objects among the changes that an heir has recorded. The others stay in the inventory.
func (p *pass) handOver(ctx context.Context, changes []change) {
	inventories := ownership.NewInventories(p.Direct)
	for i := range changes {
		change := &changes[i]
		if change.action != actionHandOver {
			continue
		}
		heir, found, err := inventories.RecordedBy(ctx, change.Ref, change.heirs)
		if change.err = err; found {
			change.action, change.reason = actionRelease, "it is in the inventory of ManagedResource "+heir.String()
		}
	}
}

// abolished finds out which of the kinds that are not served will not be back.
func (p *pass) abolished(ctx context.Context, states map[object.Key]live.State) map[schema.GroupKind]bool {
	abolished := map[schema.GroupKind]bool{}
	for key, state := range states {
		gk := key.GroupKind()
		if _, asked := abolished[gk]; asked || state.Presence != live.KindNotServed {
			continue
		}
		gone, err := p.Objects.Abolished(ctx, gk)
		abolished[gk] = gone && err == nil
	}
	return abolished
}

// delete carries out the deletions among the changes. Those whose objects are not gone yet become actionWait. It returns
// the changes of objects that were not as expected, and were left alone.
func (p *pass) delete(ctx context.Context, changes []change) (outdated []*change) {
	var deletions []apply.Deletion
	var due []*change
	for i := range changes {
		if changes[i].action == actionDelete {
			if err := p.confirm(ctx); err != nil {
				changes[i].action, changes[i].err = actionFail, err
				continue
			}
			deletions = append(deletions, apply.Deletion{
				Ref:             changes[i].Ref,
				UID:             changes[i].observation.UID,
				ResourceVersion: changes[i].observation.ResourceVersion,
				Claims:          p.deletesClaims(changes[i].Key()),
			})
			due = append(due, &changes[i])
		}
	}
	for i, outcome := range p.engine.Delete(ctx, deletions) {
		change := due[i]
		switch {
		case errors.Is(outcome.Err, apply.ErrChanged):
			outdated = append(outdated, change)
		case outcome.Err != nil:
			change.err = outcome.Err
		case outcome.Gone:
			p.Live.NoteGone(change.Ref, change.observation.UID)
		default:
			change.action, change.reason = actionWait, "it is being deleted"
			p.Live.Note(change.Ref, outcome.Observation) // or the next look, before the watch shows it, would delete it again
		}
	}
	p.finalize(ctx, changes)
	return outdated
}

// deletesClaims reports whether an object is deleted together with its PersistentVolumeClaims.
func (p *pass) deletesClaims(key object.Key) bool {
	return key.Kind == "StatefulSet" && (key.Group == "apps" || key.Group == "extensions") &&
		ptr.Deref(p.mr.Spec.DeletePersistentVolumeClaims, false)
}

// finalize removes the finalizers of objects whose time is up.
func (p *pass) finalize(ctx context.Context, changes []change) {
	for i := range changes {
		if changes[i].finalize {
			changes[i].err = p.engine.Finalize(ctx, apply.Deletion{Ref: changes[i].Ref, UID: changes[i].observation.UID})
		}
	}
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

// loneDelay is how long an object that left the manifests of the only ManagedResource waits for another one to appear: long enough for
// a client that writes one after the other.
const loneDelay = 100 * time.Millisecond

// pruneDelay returns how long objects that left the manifests wait for another ManagedResource to take them over. Without another one,
// nothing of the sort is to be expected.
func (p *pass) pruneDelay(ctx context.Context) time.Duration {
	list := &resourcesv1alpha1.ManagedResourceList{}
	if p.claims.Shared(p.self.Owner) || p.Source.List(ctx, list, client.UnsafeDisableDeepCopy) != nil {
		return p.Options.PruneDelay
	}
	for i := range list.Items {
		other := &list.Items[i]
		if client.ObjectKeyFromObject(other) != p.self.Owner && other.DeletionTimestamp == nil && resourcesv1alpha1.HasClass(other, p.Options.Class) {
			return p.Options.PruneDelay
		}
	}
	return min(p.Options.PruneDelay, loneDelay)
}
