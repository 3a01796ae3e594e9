package managedresource

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/manifest"
	"github.com/trellis-k8s/trellis/pkg/object"
)

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
	for _, ref := range slices.Concat(refsOf(p.manifests), p.unrecordable) {
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
	successors := r.claims.Set(owner, keys)
	r.Live.Use(owner, kindsOf(refs))
	r.wakeAll(successors)
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
		p.recordFailedWrite(p.mr, err)
		return fmt.Errorf("write the status of ManagedResource %s: %w", p.self.Owner, err)
	}
	p.mr.ResourceVersion, p.mr.Status = meta.ResourceVersion, status
	p.staleReads.Settle(p.self.Owner, before)
	if before != p.mr.ResourceVersion {
		p.staleReads.Add(p.self.Owner, before)
	}
	return nil
}

// recordFailedWrite remembers that a ManagedResource may have been written though the request failed, unless the API server refused it.
func (r *Reconciler) recordFailedWrite(mr *resourcesv1alpha1.ManagedResource, err error) {
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

// ownedStatus is the part of a status that this controller owns. An empty inventory is sent too: left out, it would stay
// as it is if it was written by a predecessor.
type ownedStatus struct {
	Conditions          []resourcesv1alpha1.Condition       `json:"conditions,omitempty"`
	ObservedGeneration  int64                               `json:"observedGeneration"`
	Resources           []resourcesv1alpha1.ObjectReference `json:"resources"`
	SecretsDataChecksum *string                             `json:"secretsDataChecksum,omitempty"`
	AppliedInputs       string                              `json:"appliedInputs,omitempty"`
	PruneBaseline       int32                               `json:"pruneBaseline,omitempty"`
}

// statusPatch returns the server-side-apply patch for the part of a status that this controller owns: the inventory,
// the observed generation, the checksum and the conditions, those of health with what the health controller said last. It carries the resourceVersion, so that it is refused
// when it was computed from an outdated inventory.
func statusPatch(mr *resourcesv1alpha1.ManagedResource, status resourcesv1alpha1.ManagedResourceStatus) ([]byte, error) {
	owned := ownedStatus{
		ObservedGeneration: status.ObservedGeneration, Resources: status.Resources,
		SecretsDataChecksum: status.SecretsDataChecksum, AppliedInputs: status.AppliedInputs,
		PruneBaseline: status.PruneBaseline,
	}
	if owned.Resources == nil {
		owned.Resources = []resourcesv1alpha1.ObjectReference{}
	}
	owned.Conditions = slices.DeleteFunc(slices.Clone(status.Conditions), func(c resourcesv1alpha1.Condition) bool {
		return !slices.Contains(resourcesv1alpha1.ConditionTypes(), c.Type)
	})
	patch := struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        map[string]string `json:"metadata"`
		Status          ownedStatus       `json:"status"`
	}{
		TypeMeta: metav1.TypeMeta{
			APIVersion: resourcesv1alpha1.SchemeGroupVersion.String(),
			Kind:       "ManagedResource",
		},
		Metadata: map[string]string{
			"namespace": mr.Namespace, "name": mr.Name,
			"uid": string(mr.UID), "resourceVersion": mr.ResourceVersion,
		},
		Status: owned,
	}
	body, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encode the status of ManagedResource %s/%s: %w", mr.Namespace, mr.Name, err)
	}
	return body, nil
}

// withoutInventory returns the status of a ManagedResource of which nothing is left.
func (p *pass) withoutInventory() resourcesv1alpha1.ManagedResourceStatus {
	status := *p.mr.Status.DeepCopy()
	status.Resources, status.SecretsDataChecksum, status.AppliedInputs, status.PruneBaseline = nil, nil, "", 0
	return status
}
