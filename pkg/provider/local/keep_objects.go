package local

import (
	"context"
	"fmt"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// KeepObjects makes the ManagedResources of an object retain their objects when they are deleted, because another seed takes them over.
func KeepObjects(ctx context.Context, writer client.Writer, uncached client.Reader, owner client.Object) error {
	var emitted resourcesv1alpha1.ManagedResourceList
	ofOwner := client.MatchingLabels{flow.LabelOwner: string(owner.GetUID())}
	if err := uncached.List(ctx, &emitted, ofOwner); err != nil {
		return fmt.Errorf("list the ManagedResources of %s/%s: %w", owner.GetNamespace(), owner.GetName(), err)
	}
	for i := range emitted.Items {
		mr := &emitted.Items[i]
		if ptr.Deref(mr.Spec.KeepObjects, false) || mr.DeletionTimestamp != nil {
			continue
		}
		patch := client.MergeFrom(mr.DeepCopy())
		mr.Spec.KeepObjects = ptr.To(true)
		if err := writer.Patch(ctx, mr, patch); err != nil {
			return fmt.Errorf("keep the objects of ManagedResource %s/%s: %w", mr.Namespace, mr.Name, err)
		}
	}
	return nil
}
