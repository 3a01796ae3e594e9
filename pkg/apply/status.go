package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// applyStatus applies the status of the manifest to an object that waits for it according to meta. It does nothing if
// the object no longer waits, if one of the fields was set before, or if the kind has no status subresource. In the
// last case, the object was created with the status.
func (e *Engine) applyStatus(ctx context.Context, task Task, meta *metav1.PartialObjectMetadata) (*metav1.PartialObjectMetadata, error) {
	if task.Status == nil || meta.Annotations[resourcesv1alpha1.AnnotationOperation] != resourcesv1alpha1.OperationWaitForState {
		return meta, nil
	}
	if set, err := hasStatus(meta, task.Status); set || err != nil {
		return meta, err
	}
	resource, err := e.objects.Resource(task.Ref)
	if err != nil {
		return nil, err
	}
	body := object.Require(object.Require(task.Status, "uid", string(meta.UID)), "resourceVersion", meta.ResourceVersion)
	applied, err := resource.Patch(ctx, task.Name, types.ApplyPatchType, body,
		metav1.PatchOptions{FieldManager: resourcesv1alpha1.FieldManager}, "status")
	switch {
	case err == nil:
		return applied, nil
	case apierrors.IsNotFound(err):
		return meta, nil
	}
	return nil, changed(fmt.Errorf("apply the status that it waits for: %w", err))
}

// hasStatus reports whether an object has one of the status fields in the body.
func hasStatus(meta *metav1.PartialObjectMetadata, body []byte) (bool, error) {
	var wanted struct {
		Status map[string]any `json:"status"`
	}
	if err := json.Unmarshal(body, &wanted); err != nil {
		return false, fmt.Errorf("decode the status: %w", err)
	}
	return fieldowner.HasStatus(meta.ManagedFields, slices.Collect(maps.Keys(wanted.Status)))
}
