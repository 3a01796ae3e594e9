package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/measure"
)

// limitClass is the class of the bare client's ManagedResources. No resource-manager handles this class.
const limitClass = "bench-limit"

// bareAgent is the user agent of the bare client.
const bareAgent = "limit"

// bareClient sends the minimal requests of a reconciler, known in advance: it reads and computes nothing. Like the
// resource-manager, it requests only metadata in responses, in protobuf, over one HTTP/2 connection.
type bareClient struct {
	metadata metadata.Interface
}

func newBareClient(config *rest.Config) (*bareClient, error) {
	client, err := metadata.NewForConfig(measure.WithAgent(config, bareAgent))
	if err != nil {
		return nil, fmt.Errorf("create a metadata client: %w", err)
	}
	return &bareClient{metadata: client}, nil
}

// patch is one request of the bare client.
type patch struct {
	resource        schema.GroupVersionResource
	namespace, name string
	subresources    []string
	patchType       types.PatchType
	body            []byte
	force           *bool
}

// preparePatches returns the requests for every ManagedResource of a workload. They are prepared before the time
// is measured.
func preparePatches(w workload, revision int) ([][]patch, error) {
	all := make([][]patch, w.resources)
	for i := range all {
		var err error
		if all[i], err = patchesFor(w, i, revision); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// patchesFor returns the requests for one ManagedResource: for a creation first the finalizer and the inventory,
// then the objects, then the status.
func patchesFor(w workload, i, revision int) ([]patch, error) {
	var patches []patch
	status := resourcesv1alpha1.ManagedResourceStatus{}
	for j := range w.objects {
		object := w.object(i, j, revision)
		body, err := bodyOf(object, w.key(i))
		if err != nil {
			return nil, err
		}
		patches = append(patches, patch{
			resource: object.kind.resource(), namespace: object.namespace, name: object.name,
			patchType: types.ApplyPatchType, body: body, force: ptr.To(true),
		})
		status.Resources = append(status.Resources, resourcesv1alpha1.ObjectReference{
			APIVersion: object.kind.groupVersion(), Kind: object.kind.name, Namespace: object.namespace, Name: object.name,
			Labels: map[string]string{labelSet: w.set, labelRevision: fmt.Sprint(revision), resourcesv1alpha1.LabelManagedBy: "gardener"},
			Digest: fmt.Sprintf("%011d.%011d", revision, revision),
		})
	}
	status.Conditions = conditions(resourcesv1alpha1.ConditionTrue, resourcesv1alpha1.ReasonApplySucceeded, "All resources are applied.")
	status.ObservedGeneration = 1
	sum := sha256.Sum256(fmt.Append(nil, revision))
	status.SecretsDataChecksum = ptr.To(hex.EncodeToString(sum[:]))
	final, err := statusPatch(w.key(i), status)
	if err != nil {
		return nil, err
	}
	patches = append(patches, final)
	if revision > 1 {
		return patches, nil
	}
	preliminaries, err := preliminaries(w, i, status)
	return append(preliminaries, patches...), err
}

// preliminaries returns the requests that must precede the first object: finalizer and inventory.
func preliminaries(w workload, i int, final resourcesv1alpha1.ManagedResourceStatus) ([]patch, error) {
	status := resourcesv1alpha1.ManagedResourceStatus{
		Conditions: conditions(resourcesv1alpha1.ConditionProgressing, resourcesv1alpha1.ReasonApplyProgressing,
			"The resources are currently being reconciled."),
	}
	for _, reference := range final.Resources {
		reference.Digest = ""
		status.Resources = append(status.Resources, reference)
	}
	inventory, err := statusPatch(w.key(i), status)
	finalizer := inventory
	finalizer.subresources, finalizer.patchType, finalizer.force = nil, types.MergePatchType, nil
	finalizer.body = fmt.Appendf(nil, `{"metadata":{"finalizers":["%s-%s"]}}`, resourcesv1alpha1.Finalizer, limitClass)
	return []patch{finalizer, inventory}, err
}

// bodyOf returns the applied form of an object: the manifest and the marks of a managed object.
func bodyOf(object object, owner types.NamespacedName) ([]byte, error) {
	meta, ok := object.content["metadata"].(map[string]any)
	labels, okToo := meta["labels"].(map[string]any)
	if !ok || !okToo {
		return nil, fmt.Errorf("%s %s has no labels", object.kind.name, object.name)
	}
	labels[resourcesv1alpha1.LabelManagedBy] = "gardener"
	meta["annotations"] = map[string]any{
		resourcesv1alpha1.AnnotationOrigin:      owner.String(),
		resourcesv1alpha1.AnnotationDescription: resourcesv1alpha1.Description,
	}
	return json.Marshal(object.content)
}

func conditions(status resourcesv1alpha1.ConditionStatus, reason, message string) []resourcesv1alpha1.Condition {
	var result []resourcesv1alpha1.Condition
	for _, conditionType := range []resourcesv1alpha1.ConditionType{resourcesv1alpha1.Ready, resourcesv1alpha1.ResourcesApplied} {
		result = append(result, resourcesv1alpha1.Condition{
			Type: conditionType, Status: status, Reason: reason, Message: message,
			LastTransitionTime: metav1.Now(), LastUpdateTime: metav1.Now(),
		})
	}
	return result
}

func statusPatch(key types.NamespacedName, status resourcesv1alpha1.ManagedResourceStatus) (patch, error) {
	body, err := json.Marshal(map[string]any{
		"apiVersion": resourcesv1alpha1.SchemeGroupVersion.String(),
		"kind":       "ManagedResource",
		"metadata":   map[string]any{"namespace": key.Namespace, "name": key.Name},
		"status":     status,
	})
	return patch{
		resource:  resourcesv1alpha1.SchemeGroupVersion.WithResource("managedresources"),
		namespace: key.Namespace, name: key.Name, subresources: []string{"status"},
		patchType: types.ApplyPatchType, body: body, force: ptr.To(true),
	}, err
}

// send sends the requests for one ManagedResource in sequence.
func (b *bareClient) send(ctx context.Context, patches []patch) error {
	for _, p := range patches {
		_, err := b.metadata.Resource(p.resource).Namespace(p.namespace).Patch(ctx, p.name, p.patchType, p.body,
			metav1.PatchOptions{FieldManager: resourcesv1alpha1.FieldManager, Force: p.force}, p.subresources...)
		if err != nil {
			return fmt.Errorf("bare client: patch %s %s/%s: %w", p.resource.Resource, p.namespace, p.name, err)
		}
	}
	return nil
}
