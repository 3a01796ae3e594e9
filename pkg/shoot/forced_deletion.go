package shoot

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// forcedFinalizeAfter is the time after which finalizers of remaining objects in the namespace of a control plane are removed.
const forcedFinalizeAfter = "5m"

// forcedDeletion returns the plan of a forced deletion, which does not use the shoot's API server. The Cluster contains
// the annotation, so extensions do not call the infrastructure. The namespace with the Cluster is therefore deleted last.
func forcedDeletion(in Inputs) flow.Plan {
	plan, contents, namespace := flow.Plan{Deleting: true}, in.contents(), in.key(bundleNamespace)
	plan.Gone = contents.Gone()
	for _, key := range in.Emitted {
		if key != namespace {
			plan.Tombstones = append(plan.Tombstones, in.tombstone(contents, key))
		}
	}
	held, until := in.heldByBastions()
	switch {
	case !in.emitted(bundleNamespace):
	case len(plan.Tombstones) == 0 && held != "":
		plan.Next = until
		plan.Waits = append(plan.Waits, flow.Wait{Name: waitBastions, Reason: held, Holds: []flow.Key{namespace}})
	case len(plan.Tombstones) == 0:
		plan.Tombstones = []flow.Tombstone{{Key: namespace}}
	default:
		part, _ := contents.Part(bundleNamespace)
		objects := part.Objects
		part.Objects = func() ([]client.Object, error) { return finalized(objects()) }
		contents.Add(&plan, part)
	}
	return plan
}

// finalized annotates the namespace so that finalizers of remaining objects are removed some time after its deletion.
func finalized(objects []client.Object, err error) ([]client.Object, error) {
	for _, object := range objects {
		if namespace, is := object.(*corev1.Namespace); is {
			metav1.SetMetaDataAnnotation(&namespace.ObjectMeta, resourcesv1alpha1.AnnotationFinalizeDeletionAfter, forcedFinalizeAfter)
		}
	}
	return objects, err
}

// finalizeContents removes the finalizers of ManagedResources with objects in the shoot cluster, which the
// resource-manager may no longer be able to delete. It deletes those of other owners in the namespace of the control
// plane once only the namespace is left.
func (r *reconciler) finalizeContents(ctx context.Context, in Inputs) error {
	var list resourcesv1alpha1.ManagedResourceList
	if err := r.emitter.Reader.List(ctx, &list, client.InNamespace(in.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the ManagedResources in namespace %s: %w", in.Namespace, err)
	}
	alone := len(in.Emitted) == 0 || len(in.Emitted) == 1 && in.emitted(bundleNamespace)
	for i := range list.Items {
		mr := &list.Items[i]
		if ptr.Deref(mr.Spec.Class, "") != "" {
			continue
		}
		deleting := mr.DeletionTimestamp != nil
		if !deleting && alone {
			if err := client.IgnoreNotFound(r.seed.Delete(ctx, bare(mr), client.Preconditions{UID: &mr.UID})); err != nil {
				return fmt.Errorf("delete ManagedResource %s/%s: %w", mr.Namespace, mr.Name, err)
			}
			deleting = true
		}
		if !deleting || len(mr.Finalizers) == 0 {
			continue
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": mr.UID, "finalizers": nil}})
		if err != nil {
			return err
		}
		err = r.seed.Patch(ctx, bare(mr), client.RawPatch(types.MergePatchType, patch), client.FieldOwner(fieldManager))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("remove the finalizers of ManagedResource %s/%s: %w", mr.Namespace, mr.Name, err)
		}
	}
	return nil
}

// bare returns a ManagedResource that only has a name, so that no cached data is sent.
func bare(mr *resourcesv1alpha1.ManagedResource) *resourcesv1alpha1.ManagedResource {
	return &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: mr.Namespace, Name: mr.Name}}
}
