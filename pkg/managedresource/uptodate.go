package managedresource

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/applyoptions"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/manifest"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// inputsFormat is part of every digest of inputs. It changes when the same inputs are to have another effect than in the
// version before.
const inputsFormat = "1"

// upToDate reports whether the last reconcile was complete and nothing has changed since: neither what it worked from nor any
// object. It takes this from caches and watches, so that rest costs no request. It also returns the stored inventory.
func (p *pass) upToDate(ctx context.Context) (bool, input, error) {
	status := p.mr.Status
	if p.Options.AlwaysUpdate || status.AppliedInputs == "" || status.ObservedGeneration != p.mr.Generation ||
		resourcesv1alpha1.ConditionOf(status.Conditions, resourcesv1alpha1.ResourcesApplied).Reason != resourcesv1alpha1.ReasonApplySucceeded {
		return false, input{}, nil // one that was ignored until now is True for another reason
	}
	in := p.stored(p.resolveScopes(p.Objects.Mapping, nil))
	versions, err := p.secretVersions(ctx)
	if err != nil {
		return false, input{}, err
	}
	inputs, err := p.inputs(ctx, versions, nil, slices.Collect(maps.Keys(in.recorded)))
	if err != nil || inputs != status.AppliedInputs {
		return false, in, err
	}
	// The last pass recorded all that it did. None with other inputs can have been between: Secrets do not get an old version again.
	p.unrecorded.Confirm(p.self.Owner)
	unchanged, err := p.noDrift(ctx, in)
	return unchanged, in, err
}

// noDrift reports whether every recorded object is as it was applied.
func (p *pass) noDrift(ctx context.Context, in input) (bool, error) {
	manifests := make([]object.Manifest, 0, len(in.recorded))
	var bare []object.Ref
	for _, entry := range in.recorded {
		manifest := recordedManifest(entry)
		if manifest.Directive.Bare {
			bare = append(bare, manifest.Ref) // no watch shows it
			continue
		}
		manifests = append(manifests, manifest)
	}
	states := p.Live.Read(ctx, refsOf(manifests))
	p.acceptedFields.Exclude(p.self.Owner, states)
	if left, err := p.leftAtZero(ctx, in.recorded, states); left || err != nil {
		return false, err
	}
	for _, change := range p.planWave(ctx, plan{input: in}, manifests, states, nil) {
		if change.action != actionSkip {
			return false, nil
		}
	}
	for _, state := range p.Live.Confirm(ctx, bare) {
		if state.Presence != live.Present {
			return false, nil
		}
	}
	return true, nil
}

// leftAtZero reports whether another client set a recorded object to 0 replicas, from which its autoscaler does not scale: the manifest
// decides about that, and the inventory does not have it.
func (p *pass) leftAtZero(ctx context.Context, recorded inventory, states map[object.Key]live.State) (bool, error) {
	var left []object.Key
	for key, state := range states {
		preserved := resourcesv1alpha1.Truthy(recorded[key].Annotations[resourcesv1alpha1.AnnotationPreserveReplicas])
		if state.Observation.Replicas == live.ReplicasZeroOfOthers && !preserved {
			left = append(left, key)
		}
	}
	if len(left) == 0 {
		return false, nil
	}
	scalers, err := p.readAutoscalers(ctx)
	if err != nil {
		return false, err
	}
	scalingOf := p.scalingOf(scalers)
	return slices.ContainsFunc(left, func(key object.Key) bool { return scalingOf(key) == manifest.ScaledFromOne }), nil
}

// watched reports whether every change of a recorded object is an event.
func (p *pass) watched(recorded inventory) bool {
	for _, entry := range recorded {
		if applyoptions.Of(entry.Annotations).Bare || !p.Live.Watches(refOfEntry(entry)) {
			return false
		}
	}
	return true
}

// wakeResting queues the resting ManagedResources that may have changed without an event.
func (r *Reconciler) wakeResting(ctx context.Context) {
	disturbed, err := r.resting.Disturbed(ctx, r.Source, !r.Live.Watching())
	if err != nil {
		log.FromContext(ctx).Error(err, "Could not find out which ManagedResources may have changed without an event; they are reconciled at their next event")
		return
	}
	r.wakeAll(disturbed)
}

// recordedManifest returns what the inventory has of a manifest: enough to decide whether it has to be applied again.
func recordedManifest(entry resourcesv1alpha1.ObjectReference) object.Manifest {
	return object.Manifest{
		Ref: refOfEntry(entry), Digest: sentDigest(entry), Labels: entry.Labels, Annotations: entry.Annotations,
		Directive: applyoptions.Of(entry.Annotations),
	}
}

// secretVersions returns the versions of the referenced Secrets, from their metadata alone.
func (p *pass) secretVersions(ctx context.Context) ([]string, error) {
	versions := make([]string, 0, len(p.mr.Spec.SecretRefs))
	for _, reference := range p.mr.Spec.SecretRefs {
		secret := &metav1.PartialObjectMetadata{}
		secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		err := p.Source.Get(ctx, types.NamespacedName{Namespace: p.mr.Namespace, Name: reference.Name}, secret)
		switch {
		case apierrors.IsNotFound(err):
			versions = append(versions, reference.Name+" is missing")
		case err != nil:
			return nil, fmt.Errorf("look for Secret %s/%s: %w", p.mr.Namespace, reference.Name, err)
		default:
			versions = append(versions, secretVersion(secret))
		}
	}
	return versions, nil
}

func secretVersion(secret metav1.Object) string {
	return secret.GetName() + "/" + string(secret.GetUID()) + "/" + secret.GetResourceVersion()
}

// inputs returns the digest of all that decides about what is applied. Scalers are those that the manifests were rendered with, as a later
// one is a change; they are read if they are nil.
func (p *pass) inputs(ctx context.Context, secretVersions []string, scalers autoscalers, objects []object.Key) (string, error) {
	spec, specErr := json.Marshal(p.mr.Spec)
	scaled, scaledErr := p.scaledAmong(ctx, scalers, objects)
	if err := errors.Join(specErr, scaledErr); err != nil {
		return "", fmt.Errorf("digest the inputs of ManagedResource %s: %w", p.self.Owner, err)
	}
	parts := [][]byte{[]byte(inputsFormat), []byte(p.self.String()), []byte(p.Options.ManagedBy), spec}
	for _, text := range slices.Concat(secretVersions, []string{""}, scaled) {
		parts = append(parts, []byte(text))
	}
	return object.Digest(parts...), nil
}

// scaledAmong returns the objects that autoscalers scale, sorted.
func (p *pass) scaledAmong(ctx context.Context, scalers autoscalers, objects []object.Key) ([]string, error) {
	if scalers == nil {
		var err error
		if scalers, err = p.readAutoscalers(ctx); err != nil {
			return nil, err
		}
	}
	equivalences := manifest.NewEquivalences(p.mr.Spec.Equivalences)
	var scaled []string
	for _, key := range objects {
		switch identity := equivalences.Identity(key); scalers[identity] {
		case manifest.ScaledFromZero:
			scaled = append(scaled, identity.String())
		case manifest.ScaledFromOne:
			scaled = append(scaled, identity.String()+" from 1")
		}
	}
	slices.Sort(scaled)
	return slices.Compact(scaled), nil
}

// unfinishedFor is for how long manifests are kept between two looks: objects that are deleted mostly go in seconds.
const unfinishedFor = time.Minute

// suspendedManifests remembers the manifests of ManagedResources that are applied, except for objects of kinds that the API server is about to
// serve, while what left them is being deleted. That takes several looks, which need not read and decode the Secrets each time. It is safe for
// concurrent use.
type suspendedManifests struct {
	mu      sync.Mutex
	byOwner map[types.NamespacedName]suspended
}

// suspended is the input of a pass that goes on later.
type suspended struct {
	// inputs is the digest of what it was made from.
	inputs string
	input  input
}

func newSuspendedManifests() *suspendedManifests {
	return &suspendedManifests{byOwner: map[types.NamespacedName]suspended{}}
}

func (u *suspendedManifests) keep(owner types.NamespacedName, kept suspended) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.byOwner[owner] = kept
}

// take returns what was kept, and forgets it.
func (u *suspendedManifests) take(owner types.NamespacedName) (suspended, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	kept, known := u.byOwner[owner]
	delete(u.byOwner, owner)
	return kept, known
}

// resume returns the input of the last pass, if nothing that it was made from has changed. It reports whether it does.
func (p *pass) resume(ctx context.Context) (input, bool, error) {
	last, known := p.suspended.take(p.self.Owner)
	if !known || p.Clock.Since(last.input.rendered) > unfinishedFor {
		return input{}, false, nil
	}
	stored := p.stored(p.resolveScopes(p.Objects.Mapping, nil))
	versions, err := p.secretVersions(ctx)
	if err != nil {
		return input{}, false, err
	}
	scalers, err := p.readAutoscalers(ctx)
	if err != nil {
		return input{}, false, err
	}
	inputs, err := p.inputs(ctx, versions, scalers, keysOfManifests(last.input.manifests))
	if err != nil || inputs != last.inputs {
		return input{}, false, err
	}
	var secrets []object.Ref
	for _, ref := range refsOf(last.input.manifests) {
		if manifest.IsSecret(ref.Key()) {
			secrets = append(secrets, ref)
		}
	}
	if p.takesOver(ctx, secrets) {
		return input{}, false, nil // it matters who else writes them
	}
	in := last.input
	in.recorded, in.owners, in.scalers = stored.recorded, stored.owners, scalers
	return in, true, nil
}

// suspend keeps the manifests for the next pass, if all that is left to do is to wait for deletions or late kinds.
func (p *pass) suspend(ctx context.Context, plan plan, kinds freshKinds, tally tally) error {
	if !p.onlyWaits(tally, kinds) || plan.sharesSecrets || len(plan.coerced) > 0 || !plan.gate.open() {
		p.suspended.take(p.self.Owner)
		return nil
	}
	inputs, err := p.inputs(ctx, plan.secrets, plan.scalers, keysOfManifests(plan.manifests))
	if err != nil {
		return err
	}
	p.suspended.keep(p.self.Owner, suspended{inputs: inputs, input: input{
		manifests: plan.manifests, released: plan.released, checksum: plan.checksum, secrets: plan.secrets, rendered: plan.rendered,
		lateKinds: kinds.late,
	}})
	return nil
}

// onlyWaits reports whether all that is left to do is to wait for deletions or late kinds.
func (p *pass) onlyWaits(tally tally, kinds freshKinds) bool {
	otherwise := slices.ContainsFunc(tally.waiting, func(c change) bool { return !kinds.late[c.GroupKind()] })
	return p.operation == opApply && len(tally.pending)+len(tally.waiting) > 0 && !otherwise && len(tally.problems)+len(tally.failed) == 0
}

func keysOfManifests(manifests []object.Manifest) []object.Key {
	keys := make([]object.Key, 0, len(manifests))
	for _, manifest := range manifests {
		keys = append(keys, manifest.Key())
	}
	return keys
}
