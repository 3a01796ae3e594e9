package apply

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// The kinds whose deletion deletes data.
var (
	claimKind       = schema.GroupKind{Kind: "PersistentVolumeClaim"}
	volumeKind      = schema.GroupKind{Kind: "PersistentVolume"}
	statefulSetKind = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
)

// withLiveSize returns the task without the size of a PersistentVolumeClaim if the live claim is larger: Kubernetes
// does not shrink a claim, and another client may have expanded it. Reading the size takes one request for each claim
// that is applied again.
func (e *Engine) withLiveSize(ctx context.Context, task Task) (Task, error) {
	if task.GroupKind() != claimKind {
		return task, nil
	}
	var obj map[string]any
	if err := utiljson.Unmarshal(task.Body, &obj); err != nil {
		return task, fmt.Errorf("decode the manifest: %w", err)
	}
	size := fieldowner.ClaimSize()
	if !size.Has(obj) {
		return task, nil
	}
	found, err := e.readWhole(ctx, task)
	if err != nil {
		return task, err
	}
	if !larger(found.Object, obj) {
		return task, nil
	}
	for depth := len(size); depth > 1; depth-- { // an empty map would be owned as a whole
		if value, _, _ := unstructured.NestedMap(obj, size[:depth]...); len(value) == 0 {
			size[:depth].Strip(obj)
		}
	}
	if task.Body, err = object.EncodeBody(obj); err != nil {
		return task, fmt.Errorf("encode %s: %w", task.Ref, err)
	}
	task.Preserve = append(task.Preserve[:len(task.Preserve):len(task.Preserve)], size)
	task.Stripped = append(task.Stripped[:len(task.Stripped):len(task.Stripped)], size)
	return task, nil
}

// larger reports whether a live claim requests more storage than a manifest. It returns false if the size in the
// manifest is not a quantity, so that the API server reports it.
func larger(found, manifest map[string]any) bool {
	sizes := make([]resource.Quantity, 0, 2)
	for _, claim := range []map[string]any{found, manifest} {
		value, _, _ := unstructured.NestedFieldNoCopy(claim, fieldowner.ClaimSize()...)
		size, err := resource.ParseQuantity(fmt.Sprint(value))
		if err != nil {
			return false
		}
		sizes = append(sizes, size)
	}
	return sizes[0].Cmp(sizes[1]) > 0
}

// checkNoDataIsLost returns an error if the deletion of an object for its replacement would also delete data.
func (e *Engine) checkNoDataIsLost(ctx context.Context, task Task) error {
	gk := task.GroupKind()
	if gk != claimKind && gk != volumeKind && gk != statefulSetKind {
		return nil
	}
	found, err := e.readWhole(ctx, task)
	if err != nil {
		return err
	}
	phase, _, _ := unstructured.NestedString(found.Object, "status", "phase")
	volume, _, _ := unstructured.NestedString(found.Object, "spec", "volumeName")
	claims, _, _ := unstructured.NestedString(found.Object, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted")
	orphans := task.Replace.Propagation != nil && *task.Replace.Propagation == metav1.DeletePropagationOrphan
	switch {
	case gk == statefulSetKind && claims == "Delete" && !orphans:
		return errors.New("its deletion would delete its PersistentVolumeClaims (persistentVolumeClaimRetentionPolicy.whenDeleted is Delete): " +
			"retain them, or set the deletion propagation Orphan")
	case gk != statefulSetKind && (phase == "Bound" || volume != ""):
		return errors.New("it is bound, and its data would be lost: delete it yourself if it is not needed")
	}
	return nil
}
