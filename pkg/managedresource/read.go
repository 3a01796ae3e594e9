package managedresource

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/manifest"
	"github.com/trellis-k8s/trellis/pkg/object"
	"github.com/trellis-k8s/trellis/pkg/ownership"
)

// input contains the manifests in the Secrets, the problems with them, and the stored inventory.
type input struct {
	// checksum is the checksum of the data of the Secrets, secrets are their versions.
	checksum string
	secrets  []string
	// scalers are the scale targets of HorizontalPodAutoscalers. It is nil if no manifest has replicas.
	scalers autoscalers
	// sharesSecrets is set if other clients may own fields of a Secret among the manifests.
	sharesSecrets bool
	manifests     []object.Manifest
	// released are the objects whose manifests request mode Ignore.
	released []object.Ref
	// coerced names objects with labels or annotations that are not strings.
	coerced []string
	// duplicated names keys that occur twice in the manifests.
	duplicated []string
	// rendered is the time at which the manifests were rendered.
	rendered time.Time
	problems []problem
	// unread is set if a manifest could not be read, so that not all wanted objects are known.
	unread bool
	// unrecordable are wanted objects that cannot be recorded and are therefore not applied.
	unrecordable []object.Ref
	// lateKinds are the kinds that the API server did not serve yet at the end of the last pass.
	lateKinds map[schema.GroupKind]bool
	// recorded is the stored inventory, owners returns the owners of objects.
	recorded inventory
	owners   *ownership.Reader
}

// refused returns the input without objects to apply or prune, because of an error that is not in the manifests.
func (in input) refused(err error) input {
	in.problems = append(slices.Clone(in.problems), problem{
		reason: resourcesv1alpha1.ReasonApplyFailed, err: err, refuses: true,
		transient: apierrors.ReasonForError(err) != metav1.StatusReasonUnknown,
	})
	in.unrecordable = slices.Concat(in.unrecordable, refsOf(in.manifests))
	in.manifests, in.released = nil, nil
	return in
}

// read returns the manifests of the last pass if they are still valid, and otherwise those in the Secrets. It returns
// an error if they cannot be read at the moment. Errors in the manifests are problems of the input.
func (p *pass) read(ctx context.Context) (input, error) {
	in, resumed, err := p.resume(ctx)
	if err != nil {
		return input{}, err
	}
	if !resumed {
		if in, err = p.readManifests(ctx); err != nil {
			return input{}, err
		}
	}
	if p.mr.Spec.ServiceAccountName != "" || p.Options.NamespaceServiceAccounts {
		if err := p.impersonate(ctx); err != nil {
			in = in.refused(err)
		}
	}
	return in, nil
}

// readManifests reads the Secrets and renders the manifests in them.
func (p *pass) readManifests(ctx context.Context) (input, error) {
	secrets := p.readSecrets(ctx)
	// A kind that was not served before may be served now. All later steps rely on this answer.
	scopes := p.resolveScopes(p.Objects.Discover, secrets.documents)
	in := p.stored(scopes)
	in.checksum, in.secrets, in.problems = secrets.checksum, secrets.versions, secrets.problems
	p.Live.AdoptChecks(ctx, live.ChecksOf(p.self.String(), p.mr)) // before the kinds are watched and their objects are checked
	p.watchKinds(in.recorded, secrets.documents)
	if slices.ContainsFunc(secrets.documents, hasReplicas) {
		scalers, err := p.readAutoscalers(ctx)
		if err != nil {
			return input{}, err
		}
		in.scalers = scalers
	}
	tokenTargets, err := p.readTokenTargets(ctx, secrets.documents)
	if err != nil {
		return input{}, err
	}
	in.sharesSecrets = tokenTargets != nil
	return p.render(in, secrets.documents, scopes, tokenTargets), nil
}

// render adds the manifests that are rendered from documents to an input.
func (p *pass) render(in input, documents []manifest.Document, scopes scopes, tokenTargets map[object.Key]bool) input {
	ignored, err := manifest.ParseIgnoreRules(p.mr.Spec.DriftDetection)
	onlyOnChange, onChangeErr := manifest.ParseOnlyOnChangeRules(p.mr.Spec.DriftDetection)
	if err := errors.Join(err, onChangeErr); err != nil {
		in.unread = true
		return in.refused(err) // without the rules, a pass would revert changes that it must ignore
	}
	rendered := manifest.Render(documents, scopes, in.recorded, manifest.RenderOptions{
		Origin:       p.self.String(),
		ManagedBy:    p.Options.ManagedBy,
		InjectLabels: p.mr.Spec.InjectLabels,
		Scaled:       p.scalingOf(in.scalers),
		Ignored:      ignored,
		OnlyOnChange: onlyOnChange,
		TokenTargets: tokenTargets,

		StatusOnCreation: p.mr.Spec.StatusOnCreation,
	})
	in.manifests, in.released, in.rendered = rendered.Manifests, rendered.Released, p.Clock.Now()
	in.coerced, in.duplicated = rendered.Coerced, rendered.Duplicated
	in.problems = append(in.problems, unreadable(rendered.Errors)...)
	in.unread = len(in.problems) > 0
	return in
}

// readTokenTargets returns the Secrets of the target cluster to which a token requestor copies tokens. Annotations of
// Secrets in the source cluster name them. It returns nil without a request unless a token requestor may fill in a
// Secret among the documents, or other clients own fields of one.
func (p *pass) readTokenTargets(ctx context.Context, documents []manifest.Document) (map[object.Key]bool, error) {
	if !slices.ContainsFunc(documents, manifest.MayBeFilledByTokenRequestor) && !p.takesOverSecrets(ctx, documents) {
		return nil, nil
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	err := p.Source.List(ctx, list, client.UnsafeDisableDeepCopy,
		client.MatchingLabels{resourcesv1alpha1.LabelPurpose: resourcesv1alpha1.PurposeTokenRequestor})
	if err != nil {
		return nil, fmt.Errorf("list the token requestor's Secrets in the source cluster: %w", err)
	}
	targets := map[object.Key]bool{}
	for _, secret := range list.Items {
		targets[object.Key{
			Kind:      "Secret",
			Namespace: secret.Annotations[resourcesv1alpha1.AnnotationTokenTargetNamespace],
			Name:      secret.Annotations[resourcesv1alpha1.AnnotationTokenTargetName],
		}] = true
	}
	return targets, nil
}

// takesOverSecrets reports whether one of the documents is a Secret that gardener-resource-manager applied, or that has
// fields of other owners. Watches cover both, because they have the managed-by label.
func (p *pass) takesOverSecrets(ctx context.Context, documents []manifest.Document) bool {
	var secrets []object.Ref
	for _, document := range documents {
		if ref, err := manifest.RefOf(document.Object); err == nil && manifest.IsSecret(ref.Key()) {
			ref.Namespace = manifest.NamespaceOrDefault(ref.Namespace)
			secrets = append(secrets, ref)
		}
	}
	return p.takesOver(ctx, secrets)
}

// takesOver reports whether fields of one of the objects have to be taken over.
func (p *pass) takesOver(ctx context.Context, refs []object.Ref) bool {
	for _, state := range p.Live.Read(ctx, refs) {
		if state.Presence == live.Present && (state.Observation.OwnedDigest == "" || state.Observation.TakeOverCandidates != nil) {
			return true
		}
	}
	return false
}

// problem is a part of the input that could not be read, or an error that prevents the pass from changing anything.
type problem struct {
	// reason is the reason of the condition.
	reason string
	err    error
	// transient is set if a retry may help.
	transient bool
	// refuses is set if the problem is not in the manifests, and nothing is applied or pruned because of it.
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

// secretData is the content of the Secrets of a ManagedResource.
type secretData struct {
	documents []manifest.Document
	checksum  string
	versions  []string
	problems  []problem
}

// readSecrets reads and decodes the referenced Secrets. A Secret that cannot be read is reported as a problem. The
// objects in the other Secrets are still applied.
func (p *pass) readSecrets(ctx context.Context) secretData {
	var data secretData
	var secrets []*corev1.Secret
	budget := manifest.NewBudget(p.Options.Limits)
	for _, reference := range p.mr.Spec.SecretRefs {
		secret := &corev1.Secret{}
		key := types.NamespacedName{Namespace: p.mr.Namespace, Name: reference.Name}
		if err := p.Direct.Get(ctx, key, secret); err != nil {
			data.problems = append(data.problems, problem{
				reason:    resourcesv1alpha1.ReasonCannotReadSecret,
				err:       fmt.Errorf("could not read secret '%s': %w", key, err),
				transient: !apierrors.IsNotFound(err), // the creation of the Secret is an event
			})
			continue
		}
		documents, errs := budget.Decode(secret)
		data.documents = append(data.documents, documents...)
		data.problems = append(data.problems, unreadable(errs)...)
		data.versions = append(data.versions, secretVersion(secret))
		secrets = append(secrets, secret)
	}
	data.checksum = manifest.Checksum(secrets)
	if emptied(secrets) && len(p.mr.Status.Resources) > 0 {
		data.problems = append(data.problems, problem{reason: resourcesv1alpha1.ReasonCannotReadSecret, err: errEmptied})
	}
	return data
}

// errEmptied prevents the deletion of objects because their Secrets were emptied or are not filled yet.
var errEmptied = errors.New("all referenced Secrets are empty, but the inventory is not: restore the manifests, " +
	"or add a key with an empty value to delete every object")

// emptied reports whether there are Secrets and none of them has a key.
func emptied(secrets []*corev1.Secret) bool {
	for _, secret := range secrets {
		if len(secret.Data) > 0 {
			return false
		}
	}
	return len(secrets) > 0
}

// scopes contains the scope of each kind.
type scopes map[schema.GroupVersionKind]manifest.Scope

// resolveScopes returns the scopes of the kinds of the documents and of the stored inventory. The scope of a kind that
// is not served, or whose discovery fails, is ScopeUnknown.
func (p *pass) resolveScopes(discover func(schema.GroupVersionKind) (*meta.RESTMapping, error), documents []manifest.Document) scopes {
	resolved := scopes{}
	resolve := func(gvk schema.GroupVersionKind) {
		if _, done := resolved[gvk]; done {
			return
		}
		resolved[gvk] = manifest.ScopeUnknown
		mapping, err := discover(gvk)
		switch {
		case err != nil:
		case mapping.Scope.Name() == meta.RESTScopeNameRoot:
			resolved[gvk] = manifest.ScopeCluster
		default:
			resolved[gvk] = manifest.ScopeNamespaced
		}
	}
	for _, document := range documents {
		if ref, err := manifest.RefOf(document.Object); err == nil {
			resolve(ref.GroupVersionKind)
		}
	}
	for _, reference := range p.mr.Status.Resources {
		resolve(refOfEntry(reference).GroupVersionKind)
	}
	return resolved
}

// stored returns an input that contains only the stored inventory.
func (p *pass) stored(scopes scopes) input {
	recorded := inventoryOf(p.mr.Status.Resources, scopes)
	if p.operation == opCleanUp {
		for _, key := range p.deleted.Keys(p.self.Owner, p.mr.UID) {
			delete(recorded, key)
		}
	} else {
		p.deleted.Forget(p.self.Owner) // it has this class again, and its objects may be applied again
	}
	holds := func(mr *resourcesv1alpha1.ManagedResource, key object.Key) bool {
		return inventoryOf(mr.Status.Resources, scopes).has(key)
	}
	return input{recorded: recorded, owners: ownership.NewReader(p.self, p.Options.Class, p.claims, p.Source, holds)}
}

// autoscalers are the scale targets of HorizontalPodAutoscalers, by their identity.
type autoscalers map[object.Key]manifest.Scaling

// readAutoscalers returns the scale targets of all HorizontalPodAutoscalers of the target cluster.
func (p *pass) readAutoscalers(ctx context.Context) (autoscalers, error) {
	list := &autoscalingv2.HorizontalPodAutoscalerList{}
	if err := p.Autoscalers.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list HorizontalPodAutoscalers of the target cluster: %w", err)
	}
	scalers := autoscalers{}
	equivalences := manifest.NewEquivalences(p.mr.Spec.Equivalences)
	for i := range list.Items {
		if key, ok := scaledObject(&list.Items[i]); ok {
			identity := equivalences.Identity(key)
			scalers[identity] = max(scalers[identity], scalingBy(&list.Items[i]))
		}
	}
	return scalers, nil
}

// hasReplicas reports whether a document has replicas, which it may have to leave to an autoscaler.
func hasReplicas(document manifest.Document) bool {
	return fieldowner.Replicas().Has(document.Object)
}

// scaledObject returns the scale target of an autoscaler. It returns false if the reference to it is malformed.
func scaledObject(autoscaler *autoscalingv2.HorizontalPodAutoscaler) (object.Key, bool) {
	reference := autoscaler.Spec.ScaleTargetRef
	gv, err := schema.ParseGroupVersion(reference.APIVersion)
	if err != nil || reference.Name == "" {
		return object.Key{}, false
	}
	return object.Key{Group: gv.Group, Kind: reference.Kind, Namespace: autoscaler.Namespace, Name: reference.Name}, true
}

// scalingBy returns from which number of replicas an autoscaler scales. An autoscaler with a controller, such as KEDA
// or Knative, is assumed to scale from 0, because that controller does so.
func scalingBy(autoscaler *autoscalingv2.HorizontalPodAutoscaler) manifest.Scaling {
	if ptr.Deref(autoscaler.Spec.MinReplicas, 1) == 0 || metav1.GetControllerOfNoCopy(autoscaler) != nil {
		return manifest.ScaledFromZero
	}
	return manifest.ScaledFromOne
}

// scalingOf returns a function that returns how the autoscalers scale an object.
func (p *pass) scalingOf(scalers autoscalers) func(object.Key) manifest.Scaling {
	equivalences := manifest.NewEquivalences(p.mr.Spec.Equivalences)
	return func(key object.Key) manifest.Scaling { return scalers[equivalences.Identity(key)] }
}
