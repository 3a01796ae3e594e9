package managedresource

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/manifest"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// readTokenTargets finds out into which Secrets of the target cluster a token requestor copies what it got: annotations of
// Secrets in the source cluster name them. They are looked for only if one of the documents is a Secret of which others own
// fields, or that a token requestor may fill in.
func (p *pass) readTokenTargets(ctx context.Context) error {
	if !p.mayBeFilled() && !p.takesOverSecrets(ctx) {
		return nil
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	err := p.Source.List(ctx, list, client.UnsafeDisableDeepCopy,
		client.MatchingLabels{resourcesv1alpha1.LabelPurpose: resourcesv1alpha1.PurposeTokenRequestor})
	if err != nil {
		return fmt.Errorf("list the Secrets of the source cluster for a token requestor: %w", err)
	}
	p.tokenTargets = map[object.Key]bool{}
	for _, secret := range list.Items {
		p.tokenTargets[object.Key{
			Kind:      "Secret",
			Namespace: secret.Annotations[resourcesv1alpha1.AnnotationTokenTargetNamespace],
			Name:      secret.Annotations[resourcesv1alpha1.AnnotationTokenTargetName],
		}] = true
	}
	return nil
}

// mayBeFilled reports whether one of the documents is a Secret with a key that a token requestor writes.
func (p *pass) mayBeFilled() bool {
	return slices.ContainsFunc(p.documents, manifest.MayBeFilledByTokenRequestor)
}

// takesOverSecrets reports whether one of the documents is a Secret that gardener-resource-manager applied, or of which others
// own fields. Both have its label, so that watches show them.
func (p *pass) takesOverSecrets(ctx context.Context) bool {
	var secrets []object.Ref
	for _, document := range p.documents {
		if ref, err := manifest.RefOf(document.Object); err == nil && manifest.IsSecret(ref.Key()) {
			ref.Namespace = manifest.NamespaceOrDefault(ref.Namespace)
			secrets = append(secrets, ref)
		}
	}
	return p.takesOver(ctx, secrets)
}

// takesOver reports whether fields of one of the objects are to be taken over.
func (p *pass) takesOver(ctx context.Context, refs []object.Ref) bool {
	for _, state := range p.Live.Read(ctx, refs) {
		if state.Presence == live.Present && (state.Observation.OwnedDigest == "" || state.Observation.Displaceable != nil) {
			return true
		}
	}
	return false
}

// problem is a part of the input that could not be read, or that does not let anything be done.
type problem struct {
	// reason is that of the condition.
	reason string
	err    error
	// transient problems may be gone at the next try.
	transient bool
	// refuses is set if the problem is not in the manifests, and keeps everything from being applied and pruned.
	refuses bool
}

// unreadable returns the problems of manifests that cannot be decoded or rendered.
func unreadable(errs []error) []problem {
	problems := make([]problem, 0, len(errs))
	for _, err := range errs {
		problems = append(problems, problem{reason: resourcesv1alpha1.ReasonDecodingFailed, err: err})
	}
	return problems
}

// readSecrets reads and decodes the referenced Secrets. A Secret that cannot be read is a problem, not an end: the
// objects of the others are applied.
func (p *pass) readSecrets(ctx context.Context) {
	var secrets []*corev1.Secret
	budget := manifest.NewBudget(p.Options.Limits)
	for _, reference := range p.mr.Spec.SecretRefs {
		secret := &corev1.Secret{}
		key := types.NamespacedName{Namespace: p.mr.Namespace, Name: reference.Name}
		if err := p.Direct.Get(ctx, key, secret); err != nil {
			p.problems = append(p.problems, problem{
				reason:    resourcesv1alpha1.ReasonCannotReadSecret,
				err:       fmt.Errorf("could not read secret '%s': %w", key, err),
				transient: !apierrors.IsNotFound(err), // its creation is an event
			})
			continue
		}
		documents, errs := budget.Decode(secret)
		p.documents = append(p.documents, documents...)
		p.problems = append(p.problems, unreadable(errs)...)
		secrets = append(secrets, secret)
		p.secrets = append(p.secrets, secretVersion(secret))
	}
	p.checksum = manifest.Checksum(secrets)
	if emptied(secrets) && len(p.mr.Status.Resources) > 0 {
		p.problems = append(p.problems, problem{reason: resourcesv1alpha1.ReasonCannotReadSecret, err: errEmptied})
	}
}

// errEmptied keeps objects from being deleted because of Secrets that somebody has emptied, or has only begun to fill.
var errEmptied = errors.New("the secrets hold no data at all, though there are objects: restore the manifests, or, if no object is " +
	"wanted, put in a key with an empty value")

// emptied reports whether there are Secrets, and none of them has a key.
func emptied(secrets []*corev1.Secret) bool {
	for _, secret := range secrets {
		if len(secret.Data) > 0 {
			return false
		}
	}
	return len(secrets) > 0
}

// resolveScopes finds out by discover which kinds live in namespaces. Kinds that are not served, or not at the moment, stay unknown.
func (p *pass) resolveScopes(discover func(schema.GroupVersionKind) (*meta.RESTMapping, error)) {
	p.scopes = map[schema.GroupVersionKind]manifest.Scope{}
	resolve := func(gvk schema.GroupVersionKind) {
		if _, done := p.scopes[gvk]; done {
			return
		}
		p.scopes[gvk] = manifest.ScopeUnknown
		mapping, err := discover(gvk)
		switch {
		case err != nil:
		case mapping.Scope.Name() == meta.RESTScopeNameRoot:
			p.scopes[gvk] = manifest.ScopeCluster
		default:
			p.scopes[gvk] = manifest.ScopeNamespaced
		}
	}
	for _, document := range p.documents {
		if ref, err := manifest.RefOf(document.Object); err == nil {
			resolve(ref.GroupVersionKind)
		}
	}
	for _, reference := range p.mr.Status.Resources {
		resolve(refOfEntry(reference).GroupVersionKind)
	}
	p.recorded = inventoryOf(p.mr.Status.Resources, p.scopes)
	if p.operation == opCleanUp {
		for _, key := range p.deleted.Keys(p.self.Owner, p.mr.UID) {
			delete(p.recorded, key)
		}
	} else {
		p.deleted.Forget(p.self.Owner) // it came back to this class, and may be applied again
	}
}

// render turns the documents into manifests and lets go of them.
func (p *pass) render() {
	ignored, err := manifest.ParseIgnoreRules(p.mr.Spec.DriftDetection)
	if err != nil {
		p.refuse(err) // without its rules it would undo what it must not
		p.unread = true
		return
	}
	rendered := manifest.Render(p.documents, p.scopes, p.recorded, manifest.RenderOptions{
		Origin:       p.self.String(),
		ManagedBy:    p.Options.ManagedBy,
		InjectLabels: p.mr.Spec.InjectLabels,
		Scaled:       p.isScaled(),
		Ignored:      ignored,
		TokenTargets: p.tokenTargets,
	})
	p.manifests, p.released, p.coerced, p.documents, p.rendered = rendered.Manifests, rendered.Released, rendered.Coerced, nil, p.Clock.Now()
	p.problems = append(p.problems, unreadable(rendered.Errors)...)
	p.unread = len(p.problems) > 0
}

// readManifests reads the Secrets and makes manifests of them.
func (p *pass) readManifests(ctx context.Context) error {
	p.readSecrets(ctx)
	p.resolveScopes(p.Objects.Discover)                      // a kind that was not served before may be now; what follows relies on this answer
	p.Live.AdoptChecks(live.ChecksOf(p.self.String(), p.mr)) // before the kinds are watched, and judged for the first time
	p.watchKinds()
	if slices.ContainsFunc(p.documents, hasReplicas) {
		if err := p.readAutoscalers(ctx); err != nil {
			return err
		}
	}
	if err := p.readTokenTargets(ctx); err != nil {
		return err
	}
	p.render()
	return nil
}
