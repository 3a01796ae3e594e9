package managedresource

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apply"
	"github.com/trellis-k8s/trellis/pkg/manifest"
	"github.com/trellis-k8s/trellis/pkg/object"
	"github.com/trellis-k8s/trellis/pkg/ownership"
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

	documents []manifest.Document
	problems  []problem
	checksum  string
	// secrets are the versions of the Secrets that were read.
	secrets  []string
	scopes   map[schema.GroupVersionKind]manifest.Scope
	recorded inventory
	// scalers are what HorizontalPodAutoscalers scale; nil if they were not read.
	scalers autoscalers
	// tokenTargets are the Secrets into which a token requestor copies tokens.
	tokenTargets map[object.Key]bool
	manifests    []object.Manifest
	released     []object.Ref
	// coerced names objects with labels or annotations that were not strings.
	coerced []string
	// rendered is when the manifests were made.
	rendered time.Time
	// departed says since when objects are in no manifest, delay for how long they wait for another ManagedResource.
	departed map[object.Key]time.Time
	delay    time.Duration
	// owners says who owns objects.
	owners *ownership.Reader
	// baseline is how many objects the inventory held before objects left the manifests. The share of the prune guard is of it.
	baseline int
	// gate says what changes have to wait for.
	gate gate
	// guarded says why objects that left the manifests are kept.
	guarded error
	// unread is set if manifests could not be read, so that not all that is wanted is known.
	unread bool
	// coveted are objects that are wanted and cannot be recorded, so that they are not applied.
	coveted []object.Ref
	changes []change
	// freshKinds are those whose definition was created in this pass.
	freshKinds map[schema.GroupKind]bool
	// confirmed is what became of the look at the source cluster before the first deletion; nil before it.
	confirmed *error
}

func (r *Reconciler) newPass(mr *resourcesv1alpha1.ManagedResource) *pass {
	p := &pass{
		Reconciler: r,
		mr:         mr,
		duty:       dutyOf(mr, r.Options.Class),
		engine:     r.Engine,
		freshKinds: map[schema.GroupKind]bool{},
		started:    r.Clock.Now(),
		self:       resourcesv1alpha1.Origin{ClusterID: r.Options.ClusterID, Owner: client.ObjectKeyFromObject(mr)},
	}
	p.owners = ownership.NewReader(p.self, r.Options.Class, r.claims, r.Source, p.isRecordedBy)
	return p
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
		reason: resourcesv1alpha1.ReasonApplyFailed, err: err, refuses: true,
		transient: apierrors.ReasonForError(err) != metav1.StatusReasonUnknown,
	})
	p.coveted = append(p.coveted, refsOf(p.manifests)...)
	p.manifests, p.released, p.documents = nil, nil, nil
}

// claim tells the other ManagedResources which objects this one wants or holds.
func (p *pass) claim() {
	p.claims.Own(p.self.Owner)
	p.holdOn(p.recorded)
}

// holdOn claims what is in an inventory, and what is wanted. While a manifest cannot be read, nothing is let go of: what is in there could
// be what was wanted before.
func (p *pass) holdOn(recorded inventory) {
	var unsure []object.Key
	if p.unread {
		unsure = p.claims.Of(p.self.Owner)
	}
	refs := refsOfEntries(recorded)
	for _, ref := range slices.Concat(refsOf(p.manifests), p.coveted) {
		if _, recorded := recorded[ref.Key()]; !recorded {
			refs = append(refs, ref)
		}
	}
	p.hold(p.self.Owner, refs, unsure...)
}

// watchKinds has the kinds of all objects watched that are recorded or wanted.
func (p *pass) watchKinds() {
	refs := refsOfEntries(p.recorded)
	for _, document := range p.documents {
		if ref, err := manifest.RefOf(document.Object); err == nil {
			refs = append(refs, ref)
		}
	}
	p.Live.Use(p.self.Owner, kindsOf(refs))
}

// hold replaces what a ManagedResource claims by objects, of which the kinds are watched, and others. ManagedResources that wait for
// what it does not claim any more are reconciled at once.
func (r *Reconciler) hold(owner types.NamespacedName, refs []object.Ref, others ...object.Key) {
	keys := slices.Grow(others, len(refs))
	for _, ref := range refs {
		keys = append(keys, ref.Key())
	}
	heirs := r.claims.Set(owner, keys)
	r.Live.Use(owner, kindsOf(refs))
	r.wakeAll(heirs)
}

// wakeAll has ManagedResources reconciled at once.
func (r *Reconciler) wakeAll(owners []types.NamespacedName) {
	if wake := r.wake.Load(); wake != nil {
		for _, owner := range owners {
			(*wake)(owner)
		}
	}
}

// wakeSharing has the ManagedResources reconciled that claim any of the objects in the inventory of an owner, too: one of them may wait
// until it can leave an object to this one.
func (r *Reconciler) wakeSharing(owner types.NamespacedName, recorded inventory) {
	r.wakeAll(r.claims.Sharing(slices.Collect(maps.Keys(recorded)), owner))
}

// recordInventory stores what is about to be applied before it is applied, so that nothing can be lost. Nothing is applied
// if it cannot be stored.
func (p *pass) recordInventory(ctx context.Context) error {
	p.setBaseline()
	union, grown := p.recorded.union(p.recordable(ctx))
	if !grown {
		return nil
	}
	status := *p.mr.Status.DeepCopy()
	status.Resources, status.PruneBaseline = union.references(), p.baselineAfter(union)
	status, err := fit(status, p.mr.Spec)
	if err != nil {
		p.refuse(err)
		return nil
	}
	added := union.without(p.recorded)
	p.recorded = union
	status.Conditions = p.conditions(p.checksPending(status.Conditions), progressOf(resourcesv1alpha1.ConditionOf(status.Conditions, resourcesv1alpha1.ResourcesApplied)))
	if err := p.storeStatus(ctx, status); err != nil {
		return err
	}
	p.wakeSharing(p.self.Owner, added)
	return nil
}

// isRecordedBy reports whether an object is in the inventory of another ManagedResource.
func (p *pass) isRecordedBy(mr *resourcesv1alpha1.ManagedResource, key object.Key) bool {
	return inventoryOf(mr.Status.Resources, p.scopes).has(key)
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
		p.noteFailedWrite(p.mr, err)
		return fmt.Errorf("write the status of ManagedResource %s: %w", p.self.Owner, err)
	}
	p.mr.ResourceVersion, p.mr.Status = meta.ResourceVersion, status
	p.staleReads.Settle(p.self.Owner, before)
	if before != p.mr.ResourceVersion {
		p.staleReads.Add(p.self.Owner, before)
	}
	return nil
}

// noteFailedWrite remembers that a ManagedResource may have been written though the request failed, unless the API server refused it.
func (r *Reconciler) noteFailedWrite(mr *resourcesv1alpha1.ManagedResource, err error) {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Code >= http.StatusBadRequest && status.Status().Code < http.StatusInternalServerError {
		return
	}
	r.staleReads.Doubt(client.ObjectKeyFromObject(mr), mr.ResourceVersion)
}

// metadataOf names a ManagedResource for a write that is answered with its metadata alone.
func metadataOf(mr *resourcesv1alpha1.ManagedResource) *metav1.PartialObjectMetadata {
	meta := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: mr.Namespace, Name: mr.Name}}
	meta.SetGroupVersionKind(resourcesv1alpha1.SchemeGroupVersion.WithKind("ManagedResource"))
	return meta
}
