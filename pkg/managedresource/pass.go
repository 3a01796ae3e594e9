package managedresource

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apply"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// pass is one reconcile of one ManagedResource: what was read, decided and done in it.
type pass struct {
	*Reconciler
	mr   *resourcesv1alpha1.ManagedResource
	self resourcesv1alpha1.Origin
	duty duty
	// engine writes to the target cluster.
	engine *apply.Engine
	// started is when the pass began.
	started time.Time

	documents []document
	problems  []problem
	checksum  string
	// secrets are the versions of the Secrets that were read.
	secrets  []string
	scopes   map[schema.GroupVersionKind]scope
	recorded inventory
	// tokenTargets are the Secrets into which a token requestor copies tokens.
	tokenTargets map[object.Key]bool
	manifests    []object.Manifest
	released     []object.Ref
	departed     map[object.Key]time.Time
	// others are the ManagedResources that were looked at; nil for those that do not exist.
	others map[types.NamespacedName]*resourcesv1alpha1.ManagedResource
	// guarded says why objects that left the manifests are kept.
	guarded error
	changes []change
	// confirmed is what became of the look at the source cluster before the first deletion; nil before it.
	confirmed *error
}

func (r *Reconciler) newPass(mr *resourcesv1alpha1.ManagedResource) *pass {
	return &pass{
		Reconciler: r,
		mr:         mr,
		duty:       dutyOf(mr, r.Options.Class),
		engine:     r.Engine,
		others:     map[types.NamespacedName]*resourcesv1alpha1.ManagedResource{},
		started:    r.Clock.Now(),
		self:       resourcesv1alpha1.Origin{ClusterID: r.Options.ClusterID, Owner: client.ObjectKeyFromObject(mr)},
	}
}

// readSecrets reads and decodes the referenced Secrets. A Secret that cannot be read is a problem, not an end: the
// objects of the others are applied.
func (p *pass) readSecrets(ctx context.Context) {
	var secrets []*corev1.Secret
	budget := newBudget(p.Options.Limits)
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
		documents, problems := budget.decode(secret)
		p.documents = append(p.documents, documents...)
		p.problems = append(p.problems, problems...)
		secrets = append(secrets, secret)
		p.secrets = append(p.secrets, secretVersion(secret))
	}
	p.checksum = checksum(secrets)
	if emptied(secrets) && len(p.mr.Status.Resources) > 0 {
		p.problems = append(p.problems, problem{reason: resourcesv1alpha1.ReasonCannotReadSecret, err: errEmptied})
	}
}

// errEmptied keeps objects from being deleted because of Secrets that somebody has emptied, or has only begun to fill.
var errEmptied = errors.New("the secrets hold no data at all, though there are objects: restore the manifests, or, if no object is " +
	"wanted, put in a key with an empty value")

// emptied tells whether there are Secrets, and none of them has a key.
func emptied(secrets []*corev1.Secret) bool {
	for _, secret := range secrets {
		if len(secret.Data) > 0 {
			return false
		}
	}
	return len(secrets) > 0
}

// resolveScopes finds out which kinds live in namespaces. Kinds that are not served, or not at the moment, stay unknown.
func (p *pass) resolveScopes() {
	p.scopes = map[schema.GroupVersionKind]scope{}
	resolve := func(gvk schema.GroupVersionKind) {
		if _, done := p.scopes[gvk]; done {
			return
		}
		p.scopes[gvk] = scopeUnknown
		mapping, err := p.Objects.Mapping(gvk)
		switch {
		case err != nil:
		case mapping.Scope.Name() == meta.RESTScopeNameRoot:
			p.scopes[gvk] = scopeCluster
		default:
			p.scopes[gvk] = scopeNamespaced
		}
	}
	for _, document := range p.documents {
		if ref, err := refOf(document.object); err == nil {
			resolve(ref.GroupVersionKind)
		}
	}
	for _, reference := range p.mr.Status.Resources {
		resolve(refOfEntry(reference).GroupVersionKind)
	}
	p.recorded = inventoryOf(p.mr.Status.Resources, p.scopes)
}

// render turns the documents into manifests and lets go of them.
func (p *pass) render(scalers autoscalers) {
	ignored, err := ignoreRulesOf(p.mr.Spec.DriftDetection)
	if err != nil {
		p.refuse(err) // without its rules it would undo what it must not
		return
	}
	rendered := render(p.documents, p.scopes, p.recorded, marks{
		origin:       p.self.String(),
		managedBy:    p.Options.ManagedBy,
		injectLabels: p.mr.Spec.InjectLabels,
		scaled:       p.scaledBy(scalers),
		ignored:      ignored,
		tokenTargets: p.tokenTargets,
	})
	p.manifests, p.released, p.documents = rendered.manifests, rendered.released, nil
	p.problems = append(p.problems, rendered.problems...)
}

// impersonate has everything written in the name of the ServiceAccount that the ManagedResource asks for.
func (p *pass) impersonate(ctx context.Context) error {
	asked := p.mr.Spec.ServiceAccountName
	if asked == "" {
		return nil
	}
	serviceAccount := types.NamespacedName{Namespace: p.mr.Namespace, Name: asked}
	if namespace, name, found := strings.Cut(asked, "/"); found {
		serviceAccount = types.NamespacedName{Namespace: namespace, Name: name}
	}
	engine, err := p.Engine.As(ctx, serviceAccount)
	if err != nil {
		return fmt.Errorf("spec.serviceAccountName: %w", err)
	}
	p.engine = engine
	return nil
}

// refuse has nothing applied and nothing pruned.
func (p *pass) refuse(err error) {
	p.problems = append(p.problems, problem{
		reason: resourcesv1alpha1.ReasonApplyFailed, err: err, transient: apierrors.ReasonForError(err) != metav1.StatusReasonUnknown,
	})
	p.manifests, p.released, p.documents = nil, nil, nil
}

// claim tells the other ManagedResources which objects this one wants or holds.
func (p *pass) claim() {
	refs := refsOfEntries(p.recorded)
	for _, manifest := range p.manifests {
		if _, recorded := p.recorded[manifest.Key()]; !recorded {
			refs = append(refs, manifest.Ref)
		}
	}
	p.hold(p.self.Owner, refs)
}

// watchKinds has the kinds of all objects watched that are recorded or wanted.
func (p *pass) watchKinds() {
	refs := refsOfEntries(p.recorded)
	for _, document := range p.documents {
		if ref, err := refOf(document.object); err == nil {
			refs = append(refs, ref)
		}
	}
	p.Live.Use(p.self.Owner, kindsOf(refs))
}

// kindsOf returns the kinds of objects, each once.
func kindsOf(refs []object.Ref) []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	seen := map[schema.GroupKind]bool{}
	for _, ref := range refs {
		if !seen[ref.GroupKind()] {
			seen[ref.GroupKind()] = true
			kinds = append(kinds, ref.GroupVersionKind)
		}
	}
	return kinds
}

// hold replaces what a ManagedResource claims, and has the kinds of these objects watched. ManagedResources that wait for
// what it does not claim any more are reconciled at once.
func (r *Reconciler) hold(owner types.NamespacedName, refs []object.Ref) {
	keys := make([]object.Key, 0, len(refs))
	for _, ref := range refs {
		keys = append(keys, ref.Key())
	}
	heirs := r.claims.set(owner, keys)
	r.Live.Use(owner, kindsOf(refs))
	if wake := r.wake.Load(); wake != nil {
		for _, heir := range heirs {
			(*wake)(heir)
		}
	}
}

// recordInventory stores what is about to be applied before it is applied, so that nothing can be lost. Nothing is applied
// if it cannot be stored.
func (p *pass) recordInventory(ctx context.Context) error {
	union, grown := p.recorded.union(p.manifests)
	if !grown {
		return nil
	}
	status := *p.mr.Status.DeepCopy()
	status.Resources = union.references()
	status, err := fit(status)
	if err != nil {
		p.refuse(err)
		return nil
	}
	p.recorded = union
	status.Conditions = p.conditions(p.checksPending(status.Conditions), progressOf(resourcesv1alpha1.ConditionOf(status.Conditions, resourcesv1alpha1.ResourcesApplied)))
	return p.storeStatus(ctx, status)
}

// storeStatus writes the status. It fails with a conflict if the ManagedResource is not the one that was read.
func (p *pass) storeStatus(ctx context.Context, status resourcesv1alpha1.ManagedResourceStatus) error {
	body, err := statusPatch(p.mr, status)
	if err != nil {
		return err
	}
	before, meta := p.mr.ResourceVersion, metadataOf(p.mr)
	err = p.Source.Status().Patch(ctx, meta, client.RawPatch(types.ApplyPatchType, body),
		client.FieldOwner(resourcesv1alpha1.FieldManager), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("write the status of ManagedResource %s: %w", p.self.Owner, err)
	}
	p.mr.ResourceVersion, p.mr.Status = meta.ResourceVersion, status
	if before != p.mr.ResourceVersion {
		p.superseded.add(p.self.Owner, before)
	}
	return nil
}

// metadataOf names a ManagedResource for a write that is answered with its metadata alone.
func metadataOf(mr *resourcesv1alpha1.ManagedResource) *metav1.PartialObjectMetadata {
	meta := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: mr.Namespace, Name: mr.Name}}
	meta.SetGroupVersionKind(resourcesv1alpha1.SchemeGroupVersion.WithKind("ManagedResource"))
	return meta
}

// withoutInventory returns the status of a ManagedResource of which nothing is left.
func (p *pass) withoutInventory() resourcesv1alpha1.ManagedResourceStatus {
	status := *p.mr.Status.DeepCopy()
	status.Resources, status.SecretsDataChecksum, status.AppliedInputs = nil, nil, ""
	return status
}

// ownership answers questions about owners from the source cluster's cache and the claims of this process.
func (p *pass) ownership(ctx context.Context) ownership {
	return ownership{
		self:       p.self,
		stands:     func(owner resourcesv1alpha1.Origin, key object.Key) bool { return p.stands(ctx, owner, key) },
		firstClaim: p.claims.first,
		otherClaim: func(key object.Key) (types.NamespacedName, bool) { return p.otherClaim(ctx, key) },
	}
}

// otherClaim returns another ManagedResource that wants an object and is there to stay.
func (p *pass) otherClaim(ctx context.Context, key object.Key) (types.NamespacedName, bool) {
	for _, owner := range p.claims.others(key, p.self.Owner) {
		if other, err := p.other(ctx, owner); err == nil && other != nil && other.DeletionTimestamp == nil {
			return owner, true
		}
	}
	return types.NamespacedName{}, false
}

// other returns another ManagedResource, nil if there is none. It reads each one once in a pass.
func (p *pass) other(ctx context.Context, name types.NamespacedName) (*resourcesv1alpha1.ManagedResource, error) {
	if mr, known := p.others[name]; known {
		return mr, nil
	}
	mr := &resourcesv1alpha1.ManagedResource{}
	err := p.Source.Get(ctx, name, mr)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read ManagedResource %s: %w", name, err)
	}
	if err != nil {
		mr = nil
	}
	p.others[name] = mr
	return mr, nil
}

// stands tells whether an origin's ManagedResource exists and wants or holds the object. One that cannot be seen from
// here is taken to exist.
func (p *pass) stands(ctx context.Context, owner resourcesv1alpha1.Origin, key object.Key) bool {
	if owner.ClusterID != p.self.ClusterID || p.claims.has(key, owner.Owner) {
		return true
	}
	other, err := p.other(ctx, owner.Owner)
	if err != nil || other == nil {
		return err != nil
	}
	if resourcesv1alpha1.HasClass(other, p.Options.Class) {
		return false // it would have a claim
	}
	_, holds := inventoryOf(other.Status.Resources, p.scopes)[key]
	return holds
}
