package flow

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/references"
)

// Release is what a [Tombstone] gives up instead of deleting objects.
type Release string

const (
	// ReleaseObjects deletes the ManagedResource and keeps its objects, for something that moves to another cluster.
	ReleaseObjects Release = "Objects"
	// ReleaseBundle also keeps the ManagedResource. Another flow adopts it by its name, as one of its own bundles. Until then
	// the resource-manager goes on applying it.
	ReleaseBundle Release = "Bundle"
)

// FlowReleased is the value of LabelFlow on the ManagedResources and Secrets that no flow owns after a [ReleaseBundle].
const FlowReleased = "released"

// isReleased reports whether any flow may adopt a ManagedResource.
func isReleased(mr *resourcesv1alpha1.ManagedResource) bool {
	return mr != nil && mr.Labels[LabelFlow] == FlowReleased && mr.Labels[LabelOwner] == ""
}

// release decides on a tombstone that gives up a bundle. Nothing is deleted, so there is no order except that of
// [Tombstone.After].
func (d *decider) release(tombstone Tombstone, mr *resourcesv1alpha1.ManagedResource) {
	key := tombstone.Key
	keeps := ptr.Deref(mr.Spec.KeepObjects, false)
	step := Step{Key: key, uid: mr.UID, resourceVersion: mr.ResourceVersion}
	before := slices.DeleteFunc(slices.Clone(tombstone.After), func(key Key) bool { return !d.owner.owns(d.live.labelsOf(key)) })
	switch {
	case len(before) > 0:
		d.Pending[key] = "it is released after " + joinWith(before, ", ")
	case !keeps && (mr.DeletionTimestamp != nil || tombstone.Release == ReleaseObjects):
		step.Action, step.Reason = ActionKeepObjects, "the plan releases its objects"
		d.Steps = append(d.Steps, step)
	case mr.DeletionTimestamp != nil:
		d.Pending[key] = "it is being deleted without its objects"
	case tombstone.Release == ReleaseBundle:
		step.Action, step.Reason = ActionHandOver, "the plan releases it for another flow"
		d.Steps = append(d.Steps, step)
	case mr.Status.ObservedGeneration != mr.Generation:
		d.Pending[key] = fmt.Sprintf("it is released once the resource-manager has observed its generation %d, which keeps the objects", mr.Generation)
	default:
		step.Action, step.Reason = ActionDelete, "the plan releases its objects, and they are kept"
		d.Steps = append(d.Steps, step)
	}
}

// labelsOf returns the labels of a ManagedResource, nil if it does not exist.
func (l Live) labelsOf(key Key) map[string]string {
	if mr := l.ManagedResources[key]; mr != nil {
		return mr.Labels
	}
	return nil
}

// keepObjects writes the last revision of a bundle again, with keepObjects.
func (e *Emitter) keepObjects(ctx context.Context, owner Owner, step Step) error {
	mr, err := e.readOwn(ctx, owner, step)
	if err != nil || mr == nil {
		return err
	}
	next, err := again(mr)
	if err != nil {
		return err
	}
	next.Spec.KeepObjects = ptr.To(true)
	return e.apply(ctx, owner, next)
}

// readOwn reads the ManagedResource of a step from the API server. It returns nil if it does not exist, and an error if it
// was created again.
func (e *Emitter) readOwn(ctx context.Context, owner Owner, step Step) (*resourcesv1alpha1.ManagedResource, error) {
	mr := &resourcesv1alpha1.ManagedResource{}
	if err := e.Uncached.Get(ctx, client.ObjectKey{Namespace: step.Key.Namespace, Name: step.Key.Name}, mr); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if mr.UID != step.uid || !owner.owns(mr.Labels) {
		return nil, changed(mr, "it has been created again")
	}
	return mr, nil
}

func changed(mr *resourcesv1alpha1.ManagedResource, why string) error {
	resource := resourcesv1alpha1.SchemeGroupVersion.WithResource("managedresources").GroupResource()
	return apierrors.NewConflict(resource, mr.Name, fmt.Errorf("%s", why))
}

// handOver removes the labels of the flow from a ManagedResource and its Secrets, unless the ManagedResource has changed
// since it was observed. The Secrets come first: without the ManagedResource, no later pass would find them.
func (e *Emitter) handOver(ctx context.Context, owner Owner, step Step) error {
	mr, err := e.readOwn(ctx, owner, step)
	if err != nil || mr == nil {
		return err
	}
	labels := map[string]any{LabelFlow: FlowReleased, LabelOwner: nil}
	for _, reference := range mr.Spec.SecretRefs {
		secret := &corev1.Secret{}
		secret.Namespace, secret.Name = mr.Namespace, reference.Name
		if err := e.merge(ctx, secret, map[string]any{"metadata": map[string]any{"labels": labels}}); err != nil {
			return fmt.Errorf("release Secret %s: %w", keyOf(secret), err)
		}
	}
	err = e.merge(ctx, mr, map[string]any{"metadata": map[string]any{
		"uid": step.uid, "resourceVersion": step.resourceVersion, "labels": labels,
	}})
	if apierrors.IsConflict(err) {
		return nil // a watch reports the change, and the next pass decides again
	}
	return err
}

// adopt makes this flow the field manager of a released ManagedResource, in the place of the flow that released it. Fields
// that only the former revision has are then removed when the new one is applied.
func (e *Emitter) adopt(ctx context.Context, step Step) error {
	mr := &resourcesv1alpha1.ManagedResource{}
	if err := e.Uncached.Get(ctx, client.ObjectKey{Namespace: step.Key.Namespace, Name: step.Key.Name}, mr); err != nil {
		return err
	}
	if mr.UID != step.uid || !isReleased(mr) {
		return changed(mr, "another flow has adopted it, or it was created again")
	}
	entries, err := inherited(mr.ManagedFields, e.FieldManager)
	if err != nil {
		return fmt.Errorf("read the field managers of ManagedResource %s: %w", keyOf(mr), err)
	}
	return e.merge(ctx, mr, map[string]any{"metadata": map[string]any{
		"uid": mr.UID, "resourceVersion": mr.ResourceVersion, "managedFields": entries,
	}})
}

// inherited returns the field managers of an object after one of them has inherited all fields that others have applied.
func inherited(entries []metav1.ManagedFieldsEntry, manager string) ([]metav1.ManagedFieldsEntry, error) {
	var left []metav1.ManagedFieldsEntry
	fields := &fieldpath.Set{}
	own := metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1",
		APIVersion: resourcesv1alpha1.SchemeGroupVersion.String(),
	}
	for _, entry := range entries {
		if entry.Operation != metav1.ManagedFieldsOperationApply || entry.Subresource != "" {
			left = append(left, entry)
			continue
		}
		applied, err := fieldowner.Fields(entry)
		if err != nil {
			return nil, err
		}
		fields, own.Time = fields.Union(applied), entry.Time
	}
	if fields.Empty() {
		return left, nil
	}
	text, err := fields.ToJSON()
	if err != nil {
		return nil, err
	}
	own.FieldsV1 = &metav1.FieldsV1{}
	own.FieldsV1.SetRawBytes(text)
	return append(left, own), nil
}

// again returns a ManagedResource as its flow applies it, with the revision that it has.
func again(mr *resourcesv1alpha1.ManagedResource) (*resourcesv1alpha1.ManagedResource, error) {
	next := &resourcesv1alpha1.ManagedResource{Spec: *mr.Spec.DeepCopy()}
	next.Namespace, next.Name, next.UID, next.Labels = mr.Namespace, mr.Name, mr.UID, mr.Labels
	return next, annotate(next, mr.Annotations)
}

// annotate sets the annotations of references, and those of flows among the given ones.
func annotate(mr *resourcesv1alpha1.ManagedResource, annotations map[string]string) error {
	if err := references.InjectAnnotations(mr); err != nil {
		return err
	}
	for key, value := range annotations {
		if strings.HasPrefix(key, keyPrefix) {
			metav1.SetMetaDataAnnotation(&mr.ObjectMeta, key, value)
		}
	}
	return nil
}
