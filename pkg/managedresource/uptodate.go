package managedresource

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

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
// object. It takes this from caches and watches, so that rest costs no request.
func (p *pass) upToDate(ctx context.Context) (bool, error) {
	status := p.mr.Status
	if p.Options.AlwaysUpdate || status.AppliedInputs == "" || status.ObservedGeneration != p.mr.Generation ||
		resourcesv1alpha1.ConditionOf(status.Conditions, resourcesv1alpha1.ResourcesApplied).Reason != resourcesv1alpha1.ReasonApplySucceeded {
		return false, nil // one that was ignored until now is True for another reason
	}
	p.resolveScopes(p.Objects.Mapping)
	versions, err := p.secretVersions(ctx)
	if err != nil {
		return false, err
	}
	inputs, err := p.inputs(ctx, versions, slices.Collect(maps.Keys(p.recorded)))
	if err != nil || inputs != status.AppliedInputs {
		return false, err
	}
	// The last pass recorded all that it did. None with other inputs can have been between: Secrets do not get an old version again.
	p.unrecorded.Confirm(p.self.Owner)
	return p.noDrift(ctx), nil
}

// noDrift reports whether every recorded object is as it was applied.
func (p *pass) noDrift(ctx context.Context) bool {
	manifests := make([]object.Manifest, 0, len(p.recorded))
	var bare []object.Ref
	for _, entry := range p.recorded {
		manifest := recordedManifest(entry)
		if manifest.Directive.Bare {
			bare = append(bare, manifest.Ref) // no watch shows it
			continue
		}
		manifests = append(manifests, manifest)
	}
	states := p.Live.Read(ctx, refsOf(manifests))
	p.acceptedFields.Exclude(p.self.Owner, states)
	for _, change := range p.planWave(ctx, manifests, states, nil) {
		if change.action != actionSkip {
			return false
		}
	}
	for _, state := range p.Live.Confirm(ctx, bare) {
		if state.Presence != live.Present {
			return false
		}
	}
	return true
}

// watched reports whether every change of a recorded object is an event.
func (p *pass) watched() bool {
	for _, entry := range p.recorded {
		if applyoptions.Of(entry.Annotations).Bare || !p.Live.Watches(refOfEntry(entry)) {
			return false
		}
	}
	return true
}

// wakeResting has the resting ManagedResources reconciled that may have changed without an event.
func (r *Reconciler) wakeResting(ctx context.Context) {
	disturbed, err := r.resting.Disturbed(ctx, r.Source, !r.Live.Watching())
	if err != nil {
		log.FromContext(ctx).Error(err, "Could not find out which ManagedResources may have changed without an event; they are looked at again at their next event")
		return
	}
	r.wakeAll(disturbed)
}

// recordedManifest returns what the inventory remembers of a manifest: enough to tell whether it has to be applied again.
func recordedManifest(entry resourcesv1alpha1.ObjectReference) object.Manifest {
	return object.Manifest{
		Ref: refOfEntry(entry), Digest: sentDigest(entry), Labels: entry.Labels, Annotations: entry.Annotations,
		Directive: applyoptions.Of(entry.Annotations),
	}
}

// secretVersions returns what tells the states of the referenced Secrets apart, from their metadata alone.
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

// inputs returns the digest of all that decides about what is applied.
func (p *pass) inputs(ctx context.Context, secretVersions []string, objects []object.Key) (string, error) {
	spec, specErr := json.Marshal(p.mr.Spec)
	scaled, scaledErr := p.scaledAmong(ctx, objects)
	if err := errors.Join(specErr, scaledErr); err != nil {
		return "", fmt.Errorf("digest what ManagedResource %s is made of: %w", p.self.Owner, err)
	}
	parts := [][]byte{[]byte(inputsFormat), []byte(p.self.String()), []byte(p.Options.ManagedBy), spec}
	for _, text := range slices.Concat(secretVersions, []string{""}, scaled) {
		parts = append(parts, []byte(text))
	}
	return object.Digest(parts...), nil
}

// scaledAmong returns which of the objects HorizontalPodAutoscalers scale, sorted. It looks at those that the manifests were rendered with:
// one that came later is news.
func (p *pass) scaledAmong(ctx context.Context, objects []object.Key) ([]string, error) {
	if p.scalers == nil {
		if err := p.readAutoscalers(ctx); err != nil {
			return nil, err
		}
	}
	equivalences := manifest.NewEquivalences(p.mr.Spec.Equivalences)
	var scaled []string
	for _, key := range objects {
		if identity := equivalences.Identity(key); p.scalers[identity] {
			scaled = append(scaled, identity.String())
		}
	}
	slices.Sort(scaled)
	return slices.Compact(scaled), nil
}
