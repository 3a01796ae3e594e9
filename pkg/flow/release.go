package flow

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// guardedGroups are the API groups whose objects must confirm their deletion.
var guardedGroups = []string{druidv1alpha1.SchemeGroupVersion.Group, extensionsv1alpha1.SchemeGroupVersion.Group}

// release ends the deletion of a ManagedResource. One that the plan wants keeps its objects, and is created again when it
// no longer exists. One that the plan deletes no longer waits for others, because the plan has established that all
// bundles that precede it are deleted.
func (e *Emitter) release(ctx context.Context, step Step) error {
	spec := map[string]any{"deleteAfter": []any{}}
	if step.revision != nil {
		spec = map[string]any{"keepObjects": true}
	}
	mr := &resourcesv1alpha1.ManagedResource{}
	mr.Namespace, mr.Name = step.Key.Namespace, step.Key.Name
	err := e.merge(ctx, mr, map[string]any{"metadata": map[string]any{"uid": step.uid}, "spec": spec})
	if apierrors.IsConflict(err) {
		return nil // it was created again, which a watch reports
	}
	return err
}

// confirmInPlace confirms the deletion of a bundle on its objects. It then deletes the ManagedResource, which must not be
// applied again.
func (e *Emitter) confirmInPlace(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, step Step) error {
	annotations := map[string]any{AnnotationConfirmDeletion: "true"}
	if step.force {
		annotations[AnnotationForceDeletion] = "true"
		annotations[resourcesv1alpha1.AnnotationFinalizeDeletionAfter] = forcedFinalizeAfter
	}
	for _, entry := range mr.Status.Resources {
		if !slices.Contains(guardedGroups, inventoryKey(entry).Group) {
			continue
		}
		object := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: entry.APIVersion, Kind: entry.Kind}}
		object.Namespace, object.Name = entry.Namespace, entry.Name
		if err := e.merge(ctx, object, map[string]any{"metadata": map[string]any{"annotations": annotations}}); err != nil {
			return fmt.Errorf("confirm the deletion of %s: %w", inventoryKey(entry), err)
		}
	}
	if mr.DeletionTimestamp == nil {
		return e.remove(ctx, step)
	}
	return e.merge(ctx, mr, map[string]any{"metadata": map[string]any{
		"uid": mr.UID, "annotations": map[string]any{AnnotationConfirmed: digestOfNames(mr.Spec.SecretRefs)},
	}})
}

// merge sends a merge patch of an object. An object that no longer exists needs none.
func (e *Emitter) merge(ctx context.Context, object client.Object, patch map[string]any) error {
	body, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	return client.IgnoreNotFound(e.Writer.Patch(ctx, object, client.RawPatch(types.MergePatchType, body), client.FieldOwner(e.FieldManager)))
}
