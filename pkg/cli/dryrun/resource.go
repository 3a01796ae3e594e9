package dryrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// errNotSupported is returned by methods that the apply engine does not use.
var errNotSupported = errors.New("not supported in previews")

// resource is one object with its simulated writes. The apply engine sees only its metadata.
type resource struct {
	shared *shared
	copy   *Copy
	ref    object.Ref
	client dynamic.ResourceInterface
	as     string
}

// load reads the object once.
func (r *resource) load(ctx context.Context) error {
	if r.copy.loaded {
		return nil
	}
	found, err := r.client.Get(ctx, r.ref.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return err
	default:
		r.copy.Before, r.copy.After = found, found.DeepCopy()
	}
	r.copy.loaded = true
	return nil
}

// Get returns the metadata of the object after the simulated writes.
func (r *resource) Get(ctx context.Context, _ string, _ metav1.GetOptions, _ ...string) (*metav1.PartialObjectMetadata, error) {
	r.copy.mu.Lock()
	defer r.copy.mu.Unlock()
	if err := r.load(ctx); err != nil {
		return nil, err
	}
	if r.copy.After == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: r.ref.Group, Resource: r.ref.Kind}, r.ref.Name)
	}
	return metadataOf(r.copy.After)
}

func metadataOf(obj *unstructured.Unstructured) (*metav1.PartialObjectMetadata, error) {
	meta := &metav1.PartialObjectMetadata{}
	content, _ := obj.Object["metadata"].(map[string]any)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &meta.ObjectMeta); err != nil {
		return nil, fmt.Errorf("read the metadata of %s %s: %w", obj.GetKind(), obj.GetName(), err)
	}
	return meta, nil
}

// Patch changes the copy of the object. It ignores subresources, such as the status, which are not part of a preview.
func (r *resource) Patch(
	ctx context.Context, name string, kind types.PatchType, body []byte, options metav1.PatchOptions, subresources ...string,
) (*metav1.PartialObjectMetadata, error) {
	if len(subresources) > 0 {
		return r.Get(ctx, name, metav1.GetOptions{})
	}
	r.copy.mu.Lock()
	defer r.copy.mu.Unlock()
	if err := r.load(ctx); err != nil {
		return nil, err
	}
	var after *unstructured.Unstructured
	var err error
	switch kind {
	case types.ApplyPatchType:
		after, err = r.apply(ctx, body, options)
	case types.JSONPatchType:
		after, err = r.edit(func(before []byte) ([]byte, error) {
			patch, err := jsonpatch.DecodePatch(body)
			if err != nil {
				return nil, err
			}
			return patch.Apply(before)
		})
	case types.MergePatchType:
		after, err = r.edit(func(before []byte) ([]byte, error) { return jsonpatch.MergePatch(before, body) })
	default:
		return nil, errNotSupported
	}
	if err != nil {
		return nil, err
	}
	r.copy.After, r.copy.changed = after, true
	return metadataOf(after)
}

// apply simulates a server-side apply. It uses a dry run of the API server, unless the copy already differs from the
// object there.
func (r *resource) apply(ctx context.Context, body []byte, options metav1.PatchOptions) (*unstructured.Unstructured, error) {
	if r.copy.changed {
		return r.applyHere(ctx, body, options)
	}
	options.DryRun = []string{metav1.DryRunAll}
	after, err := r.client.Patch(ctx, r.ref.Name, types.ApplyPatchType, body, options)
	switch {
	case err == nil:
		r.shared.recordDefined(r.ref, after)
		return after, nil
	case apierrors.IsForbidden(err) && r.copy.Before == nil && r.shared.createsNamespace(r.ref.Namespace):
		return r.applyHere(ctx, body, options) // some API servers return Forbidden if the namespace does not exist
	case apierrors.IsForbidden(err) && r.as == "":
		r.shared.addForbidden(r.ref.Kind)
		return r.applyHere(ctx, body, options)
	case apierrors.IsNotFound(err) && r.shared.createsNamespace(r.ref.Namespace):
		return r.applyHere(ctx, body, options)
	}
	return nil, err
}

// recordDefined records the namespaces and kinds that later objects depend on.
func (s *shared) recordDefined(ref object.Ref, obj *unstructured.Unstructured) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case ref.GroupKind() == schema.GroupKind{Kind: "Namespace"}:
		s.namespaces[ref.Name] = true
	case ref.GroupKind() == object.Definition:
		group, _, _ := unstructured.NestedString(obj.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(obj.Object, "spec", "names", "kind")
		s.definedKinds[schema.GroupKind{Group: group, Kind: kind}] = true
	}
}

func (s *shared) defines(gk schema.GroupKind) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.definedKinds[gk]
}

func (s *shared) createsNamespace(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.namespaces[name]
}

// applyHere simulates a server-side apply on the copy, and requests defaults for the result from the API server.
func (r *resource) applyHere(ctx context.Context, body []byte, options metav1.PatchOptions) (*unstructured.Unstructured, error) {
	applied := &unstructured.Unstructured{}
	if err := json.Unmarshal(body, &applied.Object); err != nil {
		return nil, fmt.Errorf("decode the manifest of %s: %w", r.ref, err)
	}
	delete(mapAt(applied.Object, "metadata"), "uid")
	delete(mapAt(applied.Object, "metadata"), "resourceVersion")
	if r.copy.After == nil {
		return applied, nil
	}
	after, err := r.shared.schemas.apply(r.copy.After, applied, options.FieldManager)
	if err != nil {
		return nil, fmt.Errorf("simulate the apply of %s: %w", r.ref, err)
	}
	return r.complete(ctx, after, options.FieldManager)
}

// complete sends a whole object through a dry run, which applies defaults and webhooks. It keeps the simulated field
// ownership.
func (r *resource) complete(ctx context.Context, found *unstructured.Unstructured, manager string) (*unstructured.Unstructured, error) {
	if r.copy.Before == nil || r.copy.Replaced {
		return found, nil
	}
	asked := found.DeepCopy()
	asked.SetManagedFields(nil)
	asked.SetResourceVersion(r.copy.Before.GetResourceVersion())
	completed, err := r.client.Update(ctx, asked, metav1.UpdateOptions{FieldManager: manager, DryRun: []string{metav1.DryRunAll}})
	switch {
	case apierrors.IsForbidden(err) && r.as == "":
		r.shared.addForbidden(r.ref.Kind)
		return found, nil
	case err != nil:
		return nil, err
	}
	completed.SetManagedFields(found.GetManagedFields())
	return completed, nil
}

// write simulates a creation or an update by a dry run of the API server.
func (r *resource) write(ctx context.Context, body []byte) (*metav1.PartialObjectMetadata, error) {
	r.copy.mu.Lock()
	defer r.copy.mu.Unlock()
	if err := r.load(ctx); err != nil {
		return nil, err
	}
	written := &unstructured.Unstructured{}
	if err := json.Unmarshal(body, &written.Object); err != nil {
		return nil, fmt.Errorf("decode the manifest of %s: %w", r.ref, err)
	}
	after, err := r.send(ctx, written)
	if err != nil {
		return nil, err
	}
	r.copy.After, r.copy.changed = after, true
	return metadataOf(after)
}

func (r *resource) send(ctx context.Context, written *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	dryRun, manager := []string{metav1.DryRunAll}, resourcesv1alpha1.FieldManager
	if r.copy.After == nil {
		return r.client.Create(ctx, written, metav1.CreateOptions{FieldManager: manager, DryRun: dryRun})
	}
	return r.client.Update(ctx, written, metav1.UpdateOptions{FieldManager: manager, DryRun: dryRun})
}

// edit applies a patch to the copy.
func (r *resource) edit(change func([]byte) ([]byte, error)) (*unstructured.Unstructured, error) {
	if r.copy.After == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: r.ref.Group, Resource: r.ref.Kind}, r.ref.Name)
	}
	before, err := json.Marshal(r.copy.After.Object)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", r.ref, err)
	}
	text, err := change(before)
	if err != nil {
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: err.Error(),
		}}
	}
	after := &unstructured.Unstructured{}
	if err := after.UnmarshalJSON(text); err != nil {
		return nil, fmt.Errorf("decode %s: %w", r.ref, err)
	}
	return after, nil
}

// Delete simulates the deletion of the object. An object that is applied afterwards counts as replaced.
func (r *resource) Delete(ctx context.Context, _ string, _ metav1.DeleteOptions, _ ...string) error {
	r.copy.mu.Lock()
	defer r.copy.mu.Unlock()
	if err := r.load(ctx); err != nil {
		return err
	}
	r.copy.After, r.copy.changed, r.copy.Replaced = nil, true, true
	return nil
}

// DeleteCollection is not supported.
func (r *resource) DeleteCollection(context.Context, metav1.DeleteOptions, metav1.ListOptions) error {
	return errNotSupported
}

// List is not supported.
func (r *resource) List(context.Context, metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	return nil, errNotSupported
}

// Watch is not supported.
func (r *resource) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return nil, errNotSupported
}

func mapAt(obj map[string]any, field string) map[string]any {
	value, _ := obj[field].(map[string]any)
	return value
}
