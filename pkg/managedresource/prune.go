package managedresource

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
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

// unwanted returns the recorded objects that are in no manifest. It is empty while a manifest cannot be read: what is in
// there could be what is missing.
func (p *pass) unwanted(in input) inventory {
	if len(in.problems) > 0 {
		return nil
	}
	return p.outsideManifests(in, in.recorded)
}

// outsideManifests returns the objects of an inventory that are in none of the manifests that could be read.
func (p *pass) outsideManifests(in input, recorded inventory) inventory {
	equivalences := manifest.NewEquivalences(p.mr.Spec.Equivalences)
	wanted := map[object.Key]bool{}
	for _, ref := range slices.Concat(refsOf(in.manifests), in.unrecordable, in.released) {
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

// pruning is the prune step of a pass.
type pruning struct {
	*pass
	plan plan
	// departed are the times since when objects are in no manifest, delay is how long they wait for another ManagedResource.
	departed map[object.Key]time.Time
	delay    time.Duration
	// guarded is set if the prune guard refuses deletions.
	guarded error
	// check compares the ManagedResource and its Secrets with the API server, once, before the first deletion.
	check func() error
}

func (p *pass) newPruning(ctx context.Context, plan plan) *pruning {
	check := func() error { return nil } // a preview rests on the present state, or on a proposed one
	if !p.preview {
		check = sync.OnceValue(func() error { return p.compareWithSource(ctx, plan.input) })
	}
	return &pruning{pass: p, plan: plan, check: check}
}

// pruneUnwanted deletes what is in no manifest any more, after a moment in which another ManagedResource may take it over. The error says
// why the prune guard keeps objects.
func (p *pass) pruneUnwanted(ctx context.Context, plan plan) (changes []change, guarded error) {
	unwanted, pruning := p.unwanted(plan.input), p.newPruning(ctx, plan)
	if !plan.gate.open() {
		return pruning.prune(ctx, unwanted), nil // which disowns it: a dependency may take it over, and wait for that
	}
	pruning.departed = p.pruneDelays.Update(p.self.Owner, slices.Collect(maps.Keys(unwanted)), p.started)
	if len(unwanted) > 0 {
		pruning.delay = p.pruneDelay(ctx)
		if p.mr.Spec.Prune != nil {
			unwanted = pruning.guard(ctx, unwanted)
		}
	}
	return pruning.prune(ctx, unwanted), pruning.guarded
}

// prune deletes objects in the order of compareForDeletion. A step begins only when the earlier ones that hold it up are gone. What another
// ManagedResource gets holds nothing up.
func (p *pruning) prune(ctx context.Context, entries inventory) []change {
	p.claims.Disown(p.self.Owner, slices.Collect(maps.Keys(entries)))
	bySteps := map[step]inventory{}
	for key, entry := range entries {
		step := step{applyoptions.Of(entry.Annotations).Wave, apply.WaveOf(key.GroupKind())}
		if bySteps[step] == nil {
			bySteps[step] = inventory{}
		}
		bySteps[step][key] = entry
	}
	var all []change
	var pending []step
	for _, step := range slices.SortedFunc(maps.Keys(bySteps), compareForDeletion) {
		if slices.ContainsFunc(pending, step.awaitsEndOf) {
			continue
		}
		changes := p.pruneWave(ctx, bySteps[step])
		all = append(all, changes...)
		if slices.ContainsFunc(changes, func(c change) bool { return c.action == actionWait || c.err != nil }) {
			pending = append(pending, step)
		}
	}
	return all
}

// pruneWave deletes the objects of one wave. Objects that turn out not to be as the watches show them are looked at and
// decided about once more.
func (p *pruning) pruneWave(ctx context.Context, entries inventory) []change {
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

func (p *pruning) planPruning(ctx context.Context, entries inventory, states map[object.Key]live.State) []change {
	var finalizeAll time.Time
	if p.operation == opCleanUp {
		finalizeAll, _ = finalizeAt(p.mr) // what is wrong with it is said in the condition
	}
	changes := planPrune(pruneInput{
		entries:   entries,
		live:      states,
		ownership: p.plan.owners.Owners(ctx),
		managedBy: p.Options.ManagedBy,
		abolished: p.abolished(ctx, states),

		deleting: p.operation == opCleanUp, finalizeAll: finalizeAll, departed: p.departed, delay: p.delay,
		collectsGarbage: p.Options.CollectsGarbage,
		now:             p.Clock.Now(),
	})
	p.plan.gate.hold(changes, p.plan.recorded)
	p.handOver(ctx, changes)
	if p.guarded != nil { // what was not to be deleted a moment ago may be by now
		changes = slices.DeleteFunc(changes, func(c change) bool { return c.action == actionDelete })
	}
	return changes
}

// handOver releases the objects among the changes that a successor has recorded. The others stay in the inventory.
func (p *pass) handOver(ctx context.Context, changes []change) {
	inventories := ownership.NewInventories(p.Direct)
	for i := range changes {
		change := &changes[i]
		if change.action != actionHandOver {
			continue
		}
		successor, found, err := inventories.RecordedBy(ctx, change.Ref, change.successors)
		if change.err = err; found {
			change.action, change.reason = actionRelease, "it is in the inventory of ManagedResource "+successor.String()
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
func (p *pruning) delete(ctx context.Context, changes []change) (outdated []*change) {
	var deletions []apply.Deletion
	var due []*change
	for i := range changes {
		if changes[i].action == actionDelete {
			if err := p.check(); err != nil {
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
			p.unrecorded.Add(p.self.Owner, changes[i].Key())
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
			p.Live.RecordDeletion(change.Ref, change.observation.UID)
		default:
			change.action, change.reason = actionWait, "it is being deleted"
			p.Live.RecordWrite(change.Ref, outcome.Observation) // or the next look, before the watch shows it, would delete it again
		}
	}
	p.finalize(ctx, changes)
	return outdated
}

// finalize removes the finalizers of objects whose time is up.
func (p *pass) finalize(ctx context.Context, changes []change) {
	for i := range changes {
		if changes[i].finalize {
			changes[i].err = p.engine.Finalize(ctx, apply.Deletion{Ref: changes[i].Ref, UID: changes[i].observation.UID})
		}
	}
}

// deletesClaims reports whether an object is deleted together with its PersistentVolumeClaims.
func (p *pass) deletesClaims(key object.Key) bool {
	return key.Kind == "StatefulSet" && (key.Group == "apps" || key.Group == "extensions") &&
		ptr.Deref(p.mr.Spec.DeletePersistentVolumeClaims, false)
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

// unconfirmed is how long a ManagedResource that is being deleted is assumed to exist without reading it. Another one of its name can only be
// created after its finalizer was removed by hand, which takes longer.
const unconfirmed = 15 * time.Second

// errOutdated is the error of a deletion whose ManagedResource or Secret has changed since it was read.
var errOutdated = errors.New("the ManagedResource or one of its Secrets changed since this deletion was planned")

// deletionBegan returns when this process began to delete the objects of a ManagedResource that is being deleted: it may have waited for
// others that are deleted, too.
func (p *pass) deletionBegan(recorded inventory) time.Time {
	began := p.Clock.Now()
	for _, since := range p.pruneDelays.Update(p.self.Owner, slices.Collect(maps.Keys(recorded)), began) {
		if since.Before(began) {
			began = since
		}
	}
	return began
}

// compareWithSource makes sure, before something is deleted, that what the decision rests on is still so: caches may be behind, and a pass
// over many objects takes long. It looks past the caches. The error is errOutdated if something has changed, and another one if that could
// not be found out.
func (p *pass) compareWithSource(ctx context.Context, in input) error {
	if p.mr.DeletionTimestamp != nil {
		if p.Clock.Since(p.deletionBegan(in.recorded)) <= unconfirmed {
			return nil
		}
	}
	fresh := metadataOf(p.mr)
	if err := p.readFresh(ctx, fresh); err != nil {
		return err
	}
	if fresh.UID != p.mr.UID || fresh.Generation != p.mr.Generation || fresh.DeletionTimestamp.IsZero() != p.mr.DeletionTimestamp.IsZero() ||
		steeringChanged(p.mr.Annotations, fresh.Annotations) {
		return errOutdated
	}
	if p.operation != opApply {
		return nil
	}
	for i, reference := range p.mr.Spec.SecretRefs {
		secret := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: p.mr.Namespace, Name: reference.Name}}
		secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		if err := p.readFresh(ctx, secret); err != nil {
			return err
		}
		if secretVersion(secret) != in.secrets[i] {
			return errOutdated
		}
	}
	return nil
}

// readFresh reads the metadata of an object from the API server of the source cluster.
func (p *pass) readFresh(ctx context.Context, meta *metav1.PartialObjectMetadata) error {
	name := types.NamespacedName{Namespace: meta.Namespace, Name: meta.Name}
	err := p.Direct.Get(ctx, name, meta)
	if apierrors.IsNotFound(err) {
		return errOutdated
	}
	if err != nil {
		return fmt.Errorf("check that %s %s has not changed before something is deleted: %w", meta.Kind, name, err)
	}
	return nil
}
