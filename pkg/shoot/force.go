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

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// forcedFinalizeAfter is after how long what is left in the namespace of a control plane loses its finalizers.
const forcedFinalizeAfter = "5m"

// forced reports whether users want the deletion to end though the cluster or the infrastructure does not let it. The garden's API server allows this only
// while the deletion fails.
func (in Inputs) forced() bool {
	return in.Deleting && isTrue(in.Shoot.Annotations[constants.AnnotationConfirmationForceDeletion])
}

// forcedDeletion is the plan of such a deletion. Nothing of it needs the shoot's own API server. Extensions learn from the Cluster that it is forced, and
// call no infrastructure then; so the Cluster stays, with the namespace, until all else is gone.
func forcedDeletion(in Inputs) flow.Plan {
	plan, namespace := flow.Plan{Deleting: true}, in.key(bundleNamespace)
	for _, key := range in.Emitted {
		if key != namespace {
			plan.Tombstones = append(plan.Tombstones, flow.Tombstone{Key: key, Confirm: in.confirms(key), Force: true})
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
		part := in.contents()[0]
		objects := part.objects
		part.objects = func() ([]client.Object, error) { return finalized(objects()) }
		in.add(&plan, part)
	}
	return plan
}

// finalized has what is left in a namespace lose its finalizers some time after the namespace was deleted.
func finalized(objects []client.Object, err error) ([]client.Object, error) {
	for _, object := range objects {
		if namespace, is := object.(*corev1.Namespace); is {
			metav1.SetMetaDataAnnotation(&namespace.ObjectMeta, resourcesv1alpha1.AnnotationFinalizeDeletionAfter, forcedFinalizeAfter)
		}
	}
	return objects, err
}

// finalizeContents removes the finalizers of the ManagedResources of the shoot's own cluster, which nothing may be left to delete the objects of. Those of
// others in the namespace of the control plane are deleted as soon as nothing but the namespace is left.
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

// bare returns a ManagedResource that has a name and nothing else: what a cache has of it must not be written.
func bare(mr *resourcesv1alpha1.ManagedResource) *resourcesv1alpha1.ManagedResource {
	return &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: mr.Namespace, Name: mr.Name}}
}
