package managedresource

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/manifest"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// claim publishes the objects that this ManagedResource wants or has in its inventory to the other ManagedResources.
func (p *pass) claim(in input) {
	p.claims.Own(p.self.Owner)
	p.updateClaims(in)
}

// updateClaims claims the recorded and the wanted objects. While a manifest cannot be read, earlier claims are kept,
// because it may contain the objects that were wanted before.
func (p *pass) updateClaims(in input) {
	var unsure []object.Key
	if in.unread {
		unsure = p.claims.Of(p.self.Owner)
	}
	refs := refsOfEntries(in.recorded)
	for _, ref := range slices.Concat(refsOf(in.manifests), in.unrecordable) {
		if !in.recorded.has(ref.Key()) {
			refs = append(refs, ref)
		}
	}
	p.setClaims(p.self.Owner, refs, unsure...)
}

// watchKinds starts to watch the kinds of all recorded and wanted objects.
func (p *pass) watchKinds(recorded inventory, documents []manifest.Document) {
	refs := refsOfEntries(recorded)
	for _, document := range documents {
		if ref, err := manifest.RefOf(document.Object); err == nil {
			refs = append(refs, ref)
		}
	}
	p.Live.Use(p.self.Owner, kindsOf(refs))
}

// setClaims replaces the claims of a ManagedResource with objects, whose kinds are watched, and others. It enqueues the
// ManagedResources that wait for an object that is no longer claimed.
func (r *Reconciler) setClaims(owner types.NamespacedName, refs []object.Ref, others ...object.Key) {
	keys := slices.Grow(others, len(refs))
	for _, ref := range refs {
		keys = append(keys, ref.Key())
	}
	successors := r.claims.Set(owner, keys)
	r.Live.Use(owner, kindsOf(refs))
	r.enqueueAll(successors)
}

// wakeAll queues ManagedResources.
func (r *Reconciler) enqueueAll(owners []types.NamespacedName) {
	if enqueueOwner := r.enqueueOwner.Load(); enqueueOwner != nil {
		for _, owner := range owners {
			(*enqueueOwner)(owner)
		}
	}
}

// enqueueSharing enqueues the other ManagedResources that claim an object in the inventory of an owner. One of them may
// wait until it can hand over an object to this owner.
func (r *Reconciler) enqueueSharing(owner types.NamespacedName, recorded inventory) {
	r.enqueueAll(r.claims.Sharing(slices.Collect(maps.Keys(recorded)), owner))
}

// record stores the inventory with all objects that will be applied before they are applied, so that no object can be
// lost. If it cannot be stored, the plan applies nothing.
func (p *pass) record(ctx context.Context, in input, gate gate) (plan, error) {
	plan := plan{input: in, baseline: p.baselineOf(in), gate: gate}
	wanted := in.manifests
	if !gate.open() {
		wanted = p.recordable(ctx, in)
	}
	union, grown := in.recorded.union(wanted)
	if !grown {
		return plan, nil
	}
	status := *p.mr.Status.DeepCopy()
	status.Resources, status.PruneBaseline = union.references(), p.baselineAfter(plan, union, nil)
	status, err := fit(status, p.mr.Spec)
	if err != nil {
		plan.input = in.refused(err)
		return plan, nil
	}
	plan.recorded = union
	status.Conditions = p.progressing(status.Conditions)
	if err := p.storeStatus(ctx, status); err != nil {
		return plan, err
	}
	p.enqueueSharing(p.self.Owner, union.without(in.recorded))
	return plan, nil
}

// baselineOf returns the number of objects in the inventory before the manifests changed. Removed objects may stay in
// the inventory for many reconciles, because the guard refuses their deletion or because manifests cannot be read. The
// number of the first of these reconciles counts.
func (p *pass) baselineOf(in input) int {
	if baseline := int(p.mr.Status.PruneBaseline); baseline > 0 && len(p.outsideManifests(in, in.recorded)) > 0 {
		return baseline
	}
	return len(in.recorded)
}

// baselineAfter returns the baseline for the next reconcile. It is 0 if every object in the inventory is wanted.
func (p *pass) baselineAfter(plan plan, remaining inventory, changes []change) int32 {
	if p.mr.Spec.Prune == nil || p.operation != opApply || len(p.outsideManifests(plan.input, remaining)) == 0 {
		return 0
	}
	baseline := plan.baseline
	for _, change := range changes {
		if change.err == nil && (change.action == actionDelete || change.action == actionForget) {
			baseline-- // otherwise, a slow deletion would permit further deletions
		}
	}
	return int32(max(baseline, 0)) //nolint:gosec // no inventory has that many entries
}

// storeStatus writes the status. It returns a conflict if the ManagedResource has changed since it was read.
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
	p.staleReads.Resolve(p.self.Owner, before)
	if before != p.mr.ResourceVersion {
		p.staleReads.Add(p.self.Owner, before)
	}
	return nil
}

// recordFailedWrite records that a write of a ManagedResource may have succeeded although the request failed, unless
// the API server rejected it.
func (r *Reconciler) recordFailedWrite(mr *resourcesv1alpha1.ManagedResource, err error) {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Code >= http.StatusBadRequest && status.Status().Code < http.StatusInternalServerError {
		return
	}
	r.staleReads.MarkUncertain(client.ObjectKeyFromObject(mr), mr.ResourceVersion)
}

// metadataOf identifies a ManagedResource in a request whose response contains only metadata.
func metadataOf(mr *resourcesv1alpha1.ManagedResource) *metav1.PartialObjectMetadata {
	meta := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: mr.Namespace, Name: mr.Name}}
	meta.SetGroupVersionKind(resourcesv1alpha1.SchemeGroupVersion.WithKind("ManagedResource"))
	return meta
}

// ownedStatus is the part of a status that this controller owns. An empty inventory is sent too. Otherwise, the
// inventory that a previous owner of the field has written would remain.
type ownedStatus struct {
	Conditions          []resourcesv1alpha1.Condition       `json:"conditions,omitempty"`
	ObservedGeneration  int64                               `json:"observedGeneration"`
	Resources           []resourcesv1alpha1.ObjectReference `json:"resources"`
	SecretsDataChecksum *string                             `json:"secretsDataChecksum,omitempty"`
	AppliedInputs       string                              `json:"appliedInputs,omitempty"`
	PruneBaseline       int32                               `json:"pruneBaseline,omitempty"`
}

// statusPatch returns the server-side-apply patch for the part of a status that this controller owns: the inventory,
// the observed generation, the checksum and the conditions. The health conditions repeat the last result of the health
// controller. The patch contains the resourceVersion, so that it is rejected if it was computed from an outdated
// inventory.
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

// withoutInventory returns the status of a ManagedResource with an empty inventory.
func (p *pass) withoutInventory() resourcesv1alpha1.ManagedResourceStatus {
	status := *p.mr.Status.DeepCopy()
	status.Resources, status.SecretsDataChecksum, status.AppliedInputs, status.PruneBaseline = nil, nil, "", 0
	return status
}

// progressAfter is how long an apply may take before the status reports it as in progress. Most changes are applied
// faster. Their status is written once, with the result.
const progressAfter = 3 * time.Second

// progressOf returns the content of ResourcesApplied while objects are being applied. As in gardener-resource-manager,
// the reason and message of a failure or of a pending deletion stay until there is a new result.
func progressOf(before resourcesv1alpha1.Condition) resourcesv1alpha1.Statement {
	switch before.Reason {
	case resourcesv1alpha1.ReasonApplyFailed, resourcesv1alpha1.ReasonDeletionFailed, resourcesv1alpha1.ReasonDeletionPending:
		return resourcesv1alpha1.NewStatement(resourcesv1alpha1.ConditionProgressing, before.Reason, before.Message)
	}
	return resourcesv1alpha1.NewStatement(resourcesv1alpha1.ConditionProgressing, resourcesv1alpha1.ReasonApplyProgressing,
		"The resources are currently being reconciled.")
}

// progressing returns conditions for objects that are being applied and have not been checked.
func (p *pass) progressing(conditions []resourcesv1alpha1.Condition) []resourcesv1alpha1.Condition {
	applied := resourcesv1alpha1.ConditionOf(conditions, resourcesv1alpha1.ResourcesApplied)
	return p.conditions(p.checksPending(conditions), progressOf(applied))
}

// hasNews reports whether the ManagedResource or the data of its Secrets has changed since they were last applied. It
// returns false while there are problems with the input, because the condition has to report these.
func (p *pass) hasNews(in input) bool {
	last := p.mr.Status.SecretsDataChecksum
	return len(in.problems) == 0 &&
		(last == nil || *last != in.checksum || p.mr.Status.ObservedGeneration != p.mr.Generation)
}

// showProgress runs work. If work applies a change and takes long, the status reports meanwhile that it is in progress.
func (p *pass) showProgress(ctx context.Context, in input, work func() changeSet) changeSet {
	if !p.hasNews(in) {
		return work()
	}
	timer, done := p.Clock.NewTimer(progressAfter), make(chan struct{})
	defer timer.Stop()
	// work reads the ManagedResource, so the status is written to a copy until work has finished.
	mr := *p.mr
	shown := &pass{Reconciler: p.Reconciler, mr: &mr, self: p.self}
	var group sync.WaitGroup
	group.Go(func() {
		select {
		case <-timer.C():
			shown.storeProgress(ctx)
		case <-done:
		}
	})
	defer func() {
		close(done)
		group.Wait()
		*p.mr = *shown.mr
	}()
	return work()
}

// storeProgress reports in the status that objects are being applied, unless it already does. An error is only logged,
// because the final status follows in any case.
func (p *pass) storeProgress(ctx context.Context) {
	status := p.mr.Status
	status.Conditions = p.progressing(status.Conditions)
	if equality.Semantic.DeepEqual(status, p.mr.Status) {
		return
	}
	if err := p.storeStatus(ctx, status); err != nil {
		log.FromContext(ctx).V(1).Info("Could not report in the status that objects are being applied", "error", err.Error())
	}
}
