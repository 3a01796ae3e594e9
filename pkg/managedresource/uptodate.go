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

// inputsFormat is part of every digest of inputs. It must change if the same inputs have a different effect than in the
// previous version.
const inputsFormat = "1"

// upToDate reports whether the last reconcile was complete, and neither its inputs nor any object has changed since. It
// uses only caches and watches, so that an unchanged ManagedResource costs no request. It also returns the stored
// inventory.
func (p *pass) upToDate(ctx context.Context) (bool, input, error) {
	status := p.mr.Status
	if p.Options.AlwaysUpdate || status.AppliedInputs == "" || status.ObservedGeneration != p.mr.Generation ||
		resourcesv1alpha1.ConditionOf(status.Conditions, resourcesv1alpha1.ResourcesApplied).Reason != resourcesv1alpha1.ReasonApplySucceeded {
		return false, input{}, nil // the condition of an ignored ManagedResource is True for another reason
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
	// The last pass has recorded all its writes. No pass with other inputs can have followed it, because Secrets never
	// return to an old resourceVersion.
	p.unrecorded.Confirm(p.self.Owner)
	unchanged, err := p.noDrift(ctx, in)
	return unchanged, in, err
}

// noDrift reports whether every recorded object is unchanged since it was applied.
func (p *pass) noDrift(ctx context.Context, in input) (bool, error) {
	manifests := make([]object.Manifest, 0, len(in.recorded))
	var bare []object.Ref
	for _, entry := range in.recorded {
		manifest := recordedManifest(entry)
		if manifest.Directive.Bare {
			bare = append(bare, manifest.Ref) // no watch covers it
			continue
		}
		manifests = append(manifests, manifest)
	}
	states := p.Live.Read(ctx, refsOf(manifests))
	p.acceptedFields.Exclude(p.self.Owner, states)
	if left, err := p.scaledToZero(ctx, in.recorded, states); left || err != nil {
		return false, err
	}
	for _, change := range p.planWave(ctx, plan{input: in}, manifests, states, nil) {
		if change.action != actionSkip || change.completed && !in.recorded[change.Key()].Completed {
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

// scaledToZero reports whether another client has set a recorded object to 0 replicas, from which its autoscaler does
// not scale. This cannot be decided with the inventory, because it depends on the manifest.
func (p *pass) scaledToZero(ctx context.Context, recorded inventory, states map[object.Key]live.State) (bool, error) {
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

// watched reports whether every change of a recorded object causes an event.
func (p *pass) watched(recorded inventory) bool {
	for _, entry := range recorded {
		if entry.Completed {
			continue // nothing has to be done if it is deleted
		}
		if applyoptions.Of(entry.Annotations).Bare || !p.Live.Watches(refOfEntry(entry)) {
			return false
		}
	}
	return true
}

// enqueueResting enqueues the resting ManagedResources that may have changed without an event.
func (r *Reconciler) enqueueResting(ctx context.Context) {
	disturbed, err := r.resting.Disturbed(ctx, r.Source, !r.Live.Watching())
	if err != nil {
		log.FromContext(ctx).Error(err, "Could not find the ManagedResources that may have changed without an event; "+
			"they are reconciled at their next event")
		return
	}
	r.enqueueAll(disturbed)
}

// recordedManifest returns the part of a manifest that the inventory contains. It is sufficient to decide whether the
// object has to be applied again.
func recordedManifest(entry resourcesv1alpha1.ObjectReference) object.Manifest {
	return object.Manifest{
		Ref: refOfEntry(entry), Digest: sentDigest(entry), Labels: entry.Labels, Annotations: entry.Annotations,
		Directive: applyoptions.Of(entry.Annotations),
	}
}

// secretVersions returns the versions of the referenced Secrets. It reads only their metadata.
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
			return nil, fmt.Errorf("read the metadata of Secret %s/%s: %w", p.mr.Namespace, reference.Name, err)
		default:
			versions = append(versions, secretVersion(secret))
		}
	}
	return versions, nil
}

func secretVersion(secret metav1.Object) string {
	return secret.GetName() + "/" + string(secret.GetUID()) + "/" + secret.GetResourceVersion()
}

// inputs returns the digest of all inputs that determine what is applied. Scalers are the autoscalers with which the
// manifests were rendered, because a later autoscaler is a change. They are read if they are nil.
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

// suspendedFor is how long the manifests of a suspended pass are kept. Most objects are deleted within seconds.
const suspendedFor = time.Minute

// suspendedManifests stores the manifests of ManagedResources that are applied, except for objects of kinds that will
// soon be served, but still wait for deletions. Such a wait takes several passes, which do not have to read and decode
// the Secrets each time. It is safe for concurrent use.
type suspendedManifests struct {
	mu      sync.Mutex
	byOwner map[types.NamespacedName]suspended
}

// suspended is the input of a pass that is continued later.
type suspended struct {
	// inputs is the digest of the inputs from which it was made.
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

// take returns the stored input of a ManagedResource and deletes it from the store.
func (u *suspendedManifests) take(owner types.NamespacedName) (suspended, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	kept, known := u.byOwner[owner]
	delete(u.byOwner, owner)
	return kept, known
}

// resume returns the input of the last pass if nothing from which it was made has changed. The boolean is false
// otherwise.
func (p *pass) resume(ctx context.Context) (input, bool, error) {
	last, known := p.suspended.take(p.self.Owner)
	if !known || p.Clock.Since(last.input.rendered) > suspendedFor {
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
		return input{}, false, nil // the rendering depends on the other field owners
	}
	in := last.input
	in.recorded, in.owners, in.scalers = stored.recorded, stored.owners, scalers
	return in, true, nil
}

// suspend stores the manifests for the next pass if only deletions and late kinds are pending.
func (p *pass) suspend(ctx context.Context, plan plan, kinds freshKinds, tally tally) error {
	if !p.onlyWaits(tally, kinds) || plan.sharesSecrets || len(plan.coerced)+len(plan.duplicated) > 0 || !plan.gate.open() {
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

// onlyWaits reports whether only deletions and late kinds are pending.
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
