package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/retry"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/fieldowner"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// preserve returns the body to send for an object that exists. It omits the fields that must be preserved. If the
// resource-manager is their only owner, another field manager becomes their owner first, because server-side apply
// resets fields that no longer have an owner.
func (e *Engine) preserve(ctx context.Context, resource metadata.ResourceInterface, task Task) ([]byte, error) {
	if !task.preserves() {
		return task.Body, nil
	}
	meta, err := resource.Get(ctx, task.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	pattern, err := fieldowner.Indivisible(meta.ManagedFields, task.Stripped)
	if err != nil {
		return nil, err
	}
	if pattern != nil {
		return nil, Permanent(fmt.Errorf("the field %s cannot be left to others: it is part of a list or map that can only "+
			"be applied as a whole; remove the rule, or name the whole list or map", strings.Join(pattern, "/")))
	}
	if _, err := rewrite(ctx, resource, meta, func(entries []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, bool, error) {
		return fieldowner.Relinquish(entries, slices.Concat(task.Preserve, task.PreserveIfSet))
	}); err != nil {
		return nil, err
	}
	if len(task.PreserveIfSet) == 0 {
		return task.Body, nil
	}
	existing, err := fieldowner.Existing(meta.ManagedFields, task.PreserveIfSet)
	if err != nil {
		return nil, err
	}
	var obj map[string]any
	if err := json.Unmarshal(task.Body, &obj); err != nil {
		return nil, fmt.Errorf("decode the manifest: %w", err)
	}
	fieldowner.StripPaths(obj, existing)
	return object.EncodeBody(obj)
}

// immutableFields are preserved because they cannot be changed. Other managers therefore never take them from the
// resource-manager.
var immutableFields = []fieldowner.Pattern{
	{"spec", "selector"},
	{"spec", "template", "metadata", "labels"}, // of Jobs
	{"spec", "volumeClaimTemplates"},
	{"spec", "clusterIP"},
	{"spec", "clusterIPs"},
}

// relinquishes reports whether the object is created with fields that controllers may change.
func (t Task) relinquishes() bool {
	return len(t.PreserveIfSet) > 0 || slices.ContainsFunc(t.Stripped, func(stripped fieldowner.Pattern) bool {
		return !slices.ContainsFunc(immutableFields, func(field fieldowner.Pattern) bool {
			return len(stripped) >= len(field) && slices.Equal(stripped[:len(field)], field)
		})
	})
}

// relinquish transfers the preserved fields of a new object to another field manager. As long as the resource-manager
// owns them, the first change by a controller, such as an autoscaler, looks like drift. If this fails, the next apply
// does it.
func relinquish(ctx context.Context, resource metadata.ResourceInterface, task Task, meta *metav1.PartialObjectMetadata,
) *metav1.PartialObjectMetadata {
	relinquished, err := rewrite(ctx, resource, meta, func(entries []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, bool, error) {
		return fieldowner.Relinquish(entries, slices.Concat(task.Preserve, task.PreserveIfSet))
	})
	if err != nil {
		return meta
	}
	return relinquished
}

// preserves reports whether the resource-manager may own fields of the live object that must be preserved.
func (t Task) preserves() bool {
	if len(t.PreserveIfSet) > 0 {
		return true
	}
	return slices.ContainsFunc(t.Preserve, t.Live.Owned.MayHave)
}

// takeOverFirst takes over the fields of other owners that have to be removed before the object is applied. One write
// then reverts both changed and added fields. Two writes of a workload would cause two rollouts. A correction that is
// denied leaves the owners as they are, so that the writer of the fields can still be named.
func (e *Engine) takeOverFirst(ctx context.Context, resource metadata.ResourceInterface, task Task, body []byte) error {
	if task.Directive.Merge || !fieldowner.Beyond(task.Live.TakeOverCandidates, task.untaken()) {
		return nil
	}
	found, err := resource.Get(ctx, task.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if found.UID != task.Live.UID {
		return fmt.Errorf("%w: it was deleted and created again", ErrChanged)
	}
	if _, err := patch(ctx, resource, task.Name, body, metav1.DryRunAll); denied(err) {
		return err
	}
	_, err = e.takeFields(ctx, resource, task, found, e.Policy)
	return err
}

// takeOver takes over the fields of other owners, so that those that are not in the body are removed.
func (e *Engine) takeOver(ctx context.Context, resource metadata.ResourceInterface, task Task,
	meta *metav1.PartialObjectMetadata, body []byte,
) (*metav1.PartialObjectMetadata, error) {
	if task.Directive.Merge {
		return meta, nil
	}
	rewritten, err := e.takeFields(ctx, resource, task, meta, e.Policy)
	if err != nil || rewritten == meta {
		return meta, err
	}
	return patch(ctx, resource, meta.Name, body)
}

// applyWithoutOthers applies an object whose update is invalid again, without the fields of other owners, including
// controllers. These fields may be invalid in combination with the body: a Service cannot have two ports with the same
// name, and a port with another number is another port; only one member of a union may be set. If that is not enough,
// fields that others usually keep are removed, too, such as the CA bundle of a webhook that is no longer in the
// manifest. The last resort is an update. If this would not help, the cause is returned.
func (e *Engine) applyWithoutOthers(ctx context.Context, resource metadata.ResourceInterface, task Task, body []byte, cause error,
) (*metav1.PartialObjectMetadata, error) {
	if task.Directive.Merge {
		return nil, cause
	}
	found, err := resource.Get(ctx, task.Name, metav1.GetOptions{})
	if err != nil {
		return nil, &decidedError{fmt.Errorf("read its field owners, as its update is invalid (%w): %w", cause, err), err}
	}
	if found.UID != task.Live.UID {
		return nil, cause
	}
	if err := e.objects.TryReplace(ctx, task.Ref, task.initialBody(), found.ResourceVersion); err != nil {
		return nil, cause
	}
	if fieldowner.Owned(found.ManagedFields) == nil {
		if found, err = e.applyMetadata(ctx, resource, task, cause); err != nil {
			return nil, err
		}
	}
	for _, policy := range []fieldowner.Policy{e.Policy.WithoutControllers(), e.Policy.WithoutExemptions()} {
		before := found
		if found, err = e.takeFields(ctx, resource, task, found, policy); err != nil {
			return nil, &decidedError{fmt.Errorf("take its fields over, as its update is invalid (%w): %w", cause, err), err}
		}
		if found == before {
			continue
		}
		if meta, err := patch(ctx, resource, task.Name, body); !invalid(err) {
			return meta, err
		}
	}
	return e.updateWhole(ctx, task, cause)
}

// applyMetadata applies only the metadata of an object that was never applied, so that fields of other owners can be
// taken over.
func (e *Engine) applyMetadata(ctx context.Context, resource metadata.ResourceInterface, task Task, cause error,
) (*metav1.PartialObjectMetadata, error) {
	var obj map[string]any
	if err := json.Unmarshal(task.Body, &obj); err != nil {
		return nil, fmt.Errorf("decode the manifest: %w", err)
	}
	body, err := object.EncodeBody(map[string]any{"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": obj["metadata"]})
	if err != nil {
		return nil, fmt.Errorf("encode the metadata: %w", err)
	}
	marked, err := patch(ctx, resource, task.Name, object.Require(body, "uid", string(task.Live.UID)))
	if err != nil {
		return nil, &decidedError{fmt.Errorf("apply its metadata, as its update is invalid (%w): %w", cause, err), err}
	}
	return marked, nil
}

// takeFields makes the resource-manager the owner of the fields of others. It returns meta itself if there are none.
func (e *Engine) takeFields(ctx context.Context, resource metadata.ResourceInterface, task Task, meta *metav1.PartialObjectMetadata,
	policy fieldowner.Policy,
) (*metav1.PartialObjectMetadata, error) {
	policy = policy.WithPredecessor(task.Live.FormerApplier)
	return rewrite(ctx, resource, meta, func(entries []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, bool, error) {
		return fieldowner.TakeOver(entries, policy, task.untaken())
	})
}

// untaken returns the fields that are not taken over from other owners.
func (t Task) untaken() []fieldowner.Pattern {
	return slices.Concat(t.Preserve, t.PreserveIfSet, t.Untaken)
}

// rewrite replaces the managedFields of an object with the result of change, and retries if the object changes in the
// meantime. It returns the latest metadata of the object, which is meta itself if there was nothing to change.
func rewrite(ctx context.Context, resource metadata.ResourceInterface, meta *metav1.PartialObjectMetadata,
	change func([]metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, bool, error),
) (*metav1.PartialObjectMetadata, error) {
	current, result := meta, meta
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		entries, changed, err := change(current.ManagedFields)
		if err != nil || !changed {
			return err
		}
		body, err := fieldowner.PatchFor(entries, current.ResourceVersion)
		if err != nil {
			return err
		}
		patched, err := resource.Patch(ctx, meta.Name, types.JSONPatchType, body, metav1.PatchOptions{})
		if apierrors.IsConflict(err) {
			fresh, getErr := resource.Get(ctx, meta.Name, metav1.GetOptions{})
			if getErr != nil {
				return getErr
			}
			current, result = fresh, fresh // this version may not need a change
		}
		if err == nil {
			result = patched
		}
		return err
	})
	return result, err
}

// Strip are keys of labels and annotations.
type Strip struct {
	Labels, Annotations []string
}

// strip removes labels and annotations regardless of their owner.
func strip(ctx context.Context, resource metadata.ResourceInterface, meta *metav1.PartialObjectMetadata, keys Strip,
) (*metav1.PartialObjectMetadata, error) {
	if len(keys.Labels) == 0 && len(keys.Annotations) == 0 {
		return meta, nil
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":         meta.UID,
		"labels":      nulls(keys.Labels),
		"annotations": nulls(keys.Annotations),
	}})
	if err != nil {
		return nil, fmt.Errorf("encode a patch: %w", err)
	}
	return resource.Patch(ctx, meta.Name, types.MergePatchType, body, metav1.PatchOptions{})
}

func nulls(keys []string) map[string]any {
	values := make(map[string]any, len(keys))
	for _, key := range keys {
		values[key] = nil
	}
	return values
}

// Release removes the labels, annotations and field ownership of the resource-manager from an object of a
// ManagedResource, and leaves the rest unchanged. An object that does not exist, or whose origin is no longer that
// ManagedResource, is not changed.
func (e *Engine) Release(ctx context.Context, ref object.Ref, owner types.NamespacedName) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()

	err := e.release(ctx, ref, owner)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("release %s: %w", ref, redactWebhookMessage(ref, true, err))
	}
	return nil
}

func (e *Engine) release(ctx context.Context, ref object.Ref, owner types.NamespacedName) error {
	resource, err := e.objects.ResourceInAnyVersion(ref)
	if err != nil {
		return err
	}
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		meta, err := resource.Get(ctx, ref.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		origin, ok := resourcesv1alpha1.ParseOrigin(meta.Annotations[resourcesv1alpha1.AnnotationOrigin])
		if !ok || origin.Owner != owner {
			return nil // the owner has changed since the watch showed the object
		}
		rest, _ := fieldowner.Disown(meta.ManagedFields)
		body, err := fieldowner.PatchFor(rest, meta.ResourceVersion, ownershipMetadata(meta)...)
		if err != nil {
			return err
		}
		_, err = resource.Patch(ctx, ref.Name, types.JSONPatchType, body, metav1.PatchOptions{})
		return err
	})
}

// ownershipMetadata returns the JSON pointers of the labels and annotations that record the owner of an object.
func ownershipMetadata(meta *metav1.PartialObjectMetadata) []string {
	var pointers []string
	if _, found := meta.Labels[resourcesv1alpha1.LabelManagedBy]; found {
		pointers = append(pointers, "/metadata/labels/"+escapePointer(resourcesv1alpha1.LabelManagedBy))
	}
	for _, key := range []string{resourcesv1alpha1.AnnotationOrigin, resourcesv1alpha1.AnnotationDescription} {
		if _, found := meta.Annotations[key]; found {
			pointers = append(pointers, "/metadata/annotations/"+escapePointer(key))
		}
	}
	return pointers
}

// escapePointer escapes a key for a JSON pointer (RFC 6901).
func escapePointer(key string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(key) }

// Finalize removes the finalizers of an object that is being deleted, if it still has the given UID.
func (e *Engine) Finalize(ctx context.Context, deletion Deletion) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()

	resource, err := e.objects.ResourceInAnyVersion(deletion.Ref)
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": deletion.UID, "finalizers": nil}})
	if err != nil {
		return fmt.Errorf("encode a patch: %w", err)
	}
	_, err = resource.Patch(ctx, deletion.Name, types.MergePatchType, body, metav1.PatchOptions{})
	if err == nil && deletion.Group == "" && deletion.Kind == "Namespace" {
		err = e.objects.FinalizeNamespace(ctx, deletion.Name)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove the finalizers of %s: %w", deletion.Ref, redactWebhookMessage(deletion.Ref, true, err))
	}
	return nil
}
