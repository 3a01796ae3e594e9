package apply

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/metadata"

	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/object"
	"github.com/trellis-k8s/trellis/pkg/target"
)

// untypable reports whether the API server cannot apply an object, although an update may succeed: server-side apply
// does not support the schema of its kind, the live object does not match the schema, or an aggregated API server does
// not implement it. Entries of a list with the same key are a fault of the manifest, which the error names.
func untypable(err error) bool {
	if err == nil || undeclared(err) || strings.Contains(err.Error(), "duplicate entries for key") {
		return false
	}
	if apierrors.IsUnsupportedMediaType(err) {
		return true
	}
	return slices.ContainsFunc([]string{"typed patch object", "typed live object", "smd typed"}, func(text string) bool {
		return strings.Contains(err.Error(), text) // the errors of managedfields in k8s.io/apimachinery
	})
}

// convertsFrom reports whether an error may be caused by managedFields in a version that the kind no longer has: the
// API server converts the object to the version of every entry.
func convertsFrom(err error) bool {
	return apierrors.IsInternalError(err) || err != nil && strings.Contains(err.Error(), "invalid group/version")
}

// staleVersions reports whether an object has managedFields in a version that is not served.
func (e *Engine) staleVersions(task Task, entries []metav1.ManagedFieldsEntry) bool {
	return slices.ContainsFunc(entries, func(entry metav1.ManagedFieldsEntry) bool {
		if entry.APIVersion == task.GroupVersion().String() {
			return false
		}
		version := task.Ref
		version.GroupVersionKind = schema.FromAPIVersionAndKind(entry.APIVersion, task.Kind)
		_, err := e.objects.Resource(version)
		return errors.Is(err, target.ErrKindNotServed)
	})
}

// sendServed applies an object again if it has managedFields in a version that is no longer served. It first migrates
// them to the version of the manifest. If there are none, it returns the cause.
func (e *Engine) sendServed(ctx context.Context, task Task, cause error) (*metav1.PartialObjectMetadata, error) {
	if task.Live == nil {
		return nil, cause
	}
	resource, err := e.objects.Resource(task.Ref)
	if err != nil {
		return nil, err
	}
	found, err := resource.Get(ctx, task.Name, metav1.GetOptions{})
	if err != nil || !e.staleVersions(task, found.ManagedFields) {
		return nil, cause
	}
	return e.sendInOneVersion(ctx, task, cause)
}

// updateWhole sends an object as a whole, by create or update, because it cannot be applied for the reason in cause.
// The update removes everything that is not in the manifest, except metadata, the status and preserved fields. It is
// rejected if the object changes in the meantime. If the object can be applied afterwards, it is. If an update does not
// help either, updateWhole returns the cause.
func (e *Engine) updateWhole(ctx context.Context, task Task, cause error) (*metav1.PartialObjectMetadata, error) {
	if task.Live == nil {
		meta, err := e.objects.Create(ctx, task.Ref, task.initialBody())
		return meta, causeUnless(err, cause)
	}
	resource, err := e.objects.Resource(task.Ref)
	if err != nil {
		return nil, err
	}
	if task.Directive.Merge || !copyable(task.untaken()) {
		return nil, cause
	}
	found, err := e.readWhole(ctx, task)
	if err != nil {
		return nil, errors.Join(cause, err)
	}
	version := found.GetResourceVersion()
	body, err := wholeBody(task, found.Object)
	if err != nil {
		return nil, err
	}
	meta, err := e.objects.Replace(ctx, task.Ref, body, version)
	if err != nil {
		return nil, causeUnless(err, cause)
	}
	return e.applyUpdated(ctx, resource, task, meta)
}

// causeUnless returns the error of a request that was sent because of another error. If the request failed because the
// object is not acceptable, the other error describes the reason.
func causeUnless(err, cause error) error {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &status):
		return errors.Join(cause, err)
	case status.Status().Code == http.StatusUnprocessableEntity:
		return fmt.Errorf("%w; an update fails, too: %w", cause, err)
	case status.Status().Code == http.StatusBadRequest:
		return cause
	}
	return changed(&decidedError{fmt.Errorf("update it as a whole, as it cannot be applied (%w): %w", cause, err), err})
}

// applyUpdated applies an object that was updated, so that the resource-manager owns its fields. If this still fails, it
// removes the field owners, which no longer show changes: they are then detected by the generation of the object.
func (e *Engine) applyUpdated(ctx context.Context, resource metadata.ResourceInterface, task Task, meta *metav1.PartialObjectMetadata,
) (*metav1.PartialObjectMetadata, error) {
	applied, err := patch(ctx, resource, task.Name, object.Require(task.Body, "uid", string(meta.UID)))
	if err == nil {
		return e.takeOver(ctx, resource, task, applied, task.Body)
	}
	if fieldowner.Owned(meta.ManagedFields) == nil {
		return meta, nil
	}
	return rewrite(ctx, resource, meta, func(entries []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, bool, error) {
		rest, disowned := fieldowner.Disown(entries)
		return rest, disowned, nil
	})
}

// readWhole reads an object that must still be the one of the task.
func (e *Engine) readWhole(ctx context.Context, task Task) (*unstructured.Unstructured, error) {
	reading, err := e.objects.ReadingOf(task.Ref, true)
	if err != nil {
		return nil, err
	}
	read, err := reading.Get(ctx, task.Name)
	if err != nil {
		return nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(read)
	if err != nil {
		return nil, fmt.Errorf("decode the live object: %w", err)
	}
	found := &unstructured.Unstructured{Object: content}
	if found.GetUID() != task.Live.UID {
		return nil, fmt.Errorf("%w: it was deleted and created again", ErrChanged)
	}
	return found, nil
}

// copyable reports whether the fields of the patterns can be copied from one object to another. Items of lists have no
// fixed place.
func copyable(patterns []fieldowner.Pattern) bool {
	return !slices.ContainsFunc(patterns, func(pattern fieldowner.Pattern) bool { return slices.Contains(pattern, "*") })
}

// wholeBody returns the manifest with the metadata and status of the live object, and with its values of the fields
// that the resource-manager does not change. It changes the live object.
func wholeBody(task Task, found map[string]any) ([]byte, error) {
	var wanted map[string]any
	if err := utiljson.Unmarshal(task.initialBody(), &wanted); err != nil { // keeps large integers exact
		return nil, fmt.Errorf("decode the manifest: %w", err)
	}
	meta, _ := found["metadata"].(map[string]any)
	delete(meta, "managedFields")
	delete(meta, "resourceVersion") // it is added as a precondition
	manifestMeta, _ := wanted["metadata"].(map[string]any)
	for _, field := range []string{"labels", "annotations"} {
		values, _ := meta[field].(map[string]any)
		if values == nil {
			values = map[string]any{}
		}
		declared, _ := manifestMeta[field].(map[string]any)
		for key, value := range declared {
			values[key] = value
		}
		meta[field] = values
	}
	wanted["metadata"] = meta
	for _, pattern := range append(task.untaken(), fieldowner.Pattern{"status"}) {
		copyField(wanted, found, pattern)
	}
	return object.EncodeBody(wanted)
}

// copyField sets the field of a pattern to its value in another object, or removes it if it is not set there.
func copyField(to, from map[string]any, pattern fieldowner.Pattern) {
	value, set, err := unstructured.NestedFieldNoCopy(from, pattern...)
	if err != nil {
		return
	}
	if !set {
		unstructured.RemoveNestedField(to, pattern...)
		return
	}
	_ = unstructured.SetNestedField(to, runtime.DeepCopyJSONValue(value), pattern...) // a parent of another type replaces the field
}
