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

// unwanted returns the recorded objects that are not in the manifests. It is empty while a manifest cannot be read,
// because that manifest may contain the missing objects.
func (p *pass) unwanted(in input) inventory {
	if len(in.problems) > 0 {
		return nil
	}
	return p.outsideManifests(in, in.recorded)
}

// outsideManifests returns the objects of an inventory that are not in the manifests that could be read.
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

// pruning is the state of the prune step of a pass.
type pruning struct {
	*pass
	plan plan
	// unwantedSince is when each object was removed from the manifests. delay is how long its deletion is delayed, so
	// that another ManagedResource can take it over.
	unwantedSince map[object.Key]time.Time
	delay         time.Duration
	// guarded is the error of the prune guard if it refuses deletions.
	guarded error
	// check compares the ManagedResource and its Secrets with the API server. This is done once, before the first
	// deletion.
	check func() error
}

func (p *pass) newPruning(ctx context.Context, plan plan) *pruning {
	check := func() error { return nil } // a preview uses the current state or a proposed one
	if !p.preview {
		check = sync.OnceValue(func() error { return p.compareWithSource(ctx, plan.input) })
	}
	return &pruning{pass: p, plan: plan, check: check}
}

// pruneUnwanted deletes objects that are no longer in the manifests, after a delay in which another ManagedResource can
// take them over. It returns the error of the prune guard if the guard refuses deletions.
func (p *pass) pruneUnwanted(ctx context.Context, plan plan) (changes []change, guarded error) {
	unwanted, pruning := p.unwanted(plan.input), p.newPruning(ctx, plan)
	if !plan.gate.open() {
		return pruning.prune(ctx, unwanted), nil // this disowns the objects: a dependency may wait to take them over
	}
	pruning.unwantedSince = p.pruneDelays.Update(p.self.Owner, slices.Collect(maps.Keys(unwanted)), p.started)
	if len(unwanted) > 0 {
		pruning.delay = p.pruneDelay(ctx)
		if p.mr.Spec.Prune != nil {
			unwanted = pruning.guard(ctx, unwanted)
		}
	}
	return pruning.prune(ctx, unwanted), pruning.guarded
}

// prune deletes objects in the order of compareForDeletion. A step starts only when the objects of all earlier steps
// for which it has to wait no longer exist. Objects that are handed over to another ManagedResource do not delay a
// step.
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

// pruneWave deletes the objects of one wave. Objects that differ from what the watches have shown are read again and a
// second decision is made.
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
		finalizeAll, _ = finalizeAt(p.mr) // the condition reports the error
	}
	changes := planPrune(pruneInput{
		entries:   entries,
		live:      states,
		ownership: p.plan.owners.Owners(ctx),
		managedBy: p.Options.ManagedBy,
		abolished: p.abolished(ctx, states),

		deleting: p.operation == opCleanUp, finalizeAll: finalizeAll, unwantedSince: p.unwantedSince, delay: p.delay,
		collectsGarbage: p.Options.CollectsGarbage,
		now:             p.Clock.Now(),
	})
	p.plan.gate.hold(changes, p.plan.recorded)
	p.handOver(ctx, changes)
	if p.guarded != nil { // an object for which the guard found no deletion may have changed since then
		changes = slices.DeleteFunc(changes, func(c change) bool { return c.action == actionDelete })
	}
	return changes
}

// handOver releases the objects that a successor has recorded. The others stay in the inventory.
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

// abolished returns the unserved kinds that were removed permanently.
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

// delete executes the deletions among the changes. The action of objects that still exist afterwards becomes
// actionWait. It returns the changes of objects that differed from the expected state and were not deleted.
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
			p.Live.RecordWrite(change.Ref, outcome.Observation) // otherwise, the next pass might delete it again before the watch shows it
		}
	}
	p.finalize(ctx, changes)
	return outdated
}

// finalize removes the finalizers of objects whose grace period has expired.
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

// loneDelay is the prune delay of the only ManagedResource: long enough for a client that creates another
// ManagedResource right after this one is changed.
const loneDelay = 100 * time.Millisecond

// pruneDelay returns how long the deletion of objects that were removed from the manifests is delayed. The delay is
// short if there is no other ManagedResource that could take them over.
func (p *pass) pruneDelay(ctx context.Context) time.Duration {
	list := &resourcesv1alpha1.ManagedResourceList{}
	if p.claims.Shared(p.self.Owner) || p.Source.List(ctx, list, client.UnsafeDisableDeepCopy) != nil {
		return p.Options.PruneDelay
	}
	for i := range list.Items {
		other := &list.Items[i]
		if client.ObjectKeyFromObject(other) != p.self.Owner && other.DeletionTimestamp == nil &&
			resourcesv1alpha1.HasClass(other, p.Options.Class) {
			return p.Options.PruneDelay
		}
	}
	return min(p.Options.PruneDelay, loneDelay)
}

// assumedToExistFor is how long a ManagedResource that is being deleted is assumed to exist without reading it. Another
// one of the same name can only be created after its finalizer was removed manually, which takes longer.
const assumedToExistFor = 15 * time.Second

// errOutdated is the error of a deletion if the ManagedResource or a Secret has changed since it was read.
var errOutdated = errors.New("the ManagedResource or one of its Secrets changed since this deletion was planned")

// deletionBegan returns when this process started to delete the objects of a ManagedResource that is being deleted.
// This may be later than its deletion timestamp, because it may have waited for the deletion of others.
func (p *pass) deletionBegan(recorded inventory) time.Time {
	began := p.Clock.Now()
	for _, since := range p.pruneDelays.Update(p.self.Owner, slices.Collect(maps.Keys(recorded)), began) {
		if since.Before(began) {
			began = since
		}
	}
	return began
}

// compareWithSource verifies before a deletion that the state on which the decision is based is still current. Caches
// may be outdated, and a pass over many objects takes long, so it reads from the API server. It returns errOutdated if
// the ManagedResource or a Secret has changed, and another error if the requests fail.
func (p *pass) compareWithSource(ctx context.Context, in input) error {
	if p.mr.DeletionTimestamp != nil {
		if p.Clock.Since(p.deletionBegan(in.recorded)) <= assumedToExistFor {
			return nil
		}
	}
	fresh := metadataOf(p.mr)
	if err := p.readFresh(ctx, fresh); err != nil {
		return err
	}
	if fresh.UID != p.mr.UID || fresh.Generation != p.mr.Generation ||
		fresh.DeletionTimestamp.IsZero() != p.mr.DeletionTimestamp.IsZero() ||
		controlAnnotationsChanged(p.mr.Annotations, fresh.Annotations) {
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

// readFresh reads the metadata of an object from the API server of the source cluster. It returns errOutdated if the
// object does not exist.
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
