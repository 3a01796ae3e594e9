// Package extensionstatus writes conditions of Extensions. Several controllers have conditions of their own, and the API server cannot
// merge lists of custom resources.
package extensionstatus

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/operator/controller"
)

// Write changes the status of an Extension. If another controller has written it since it was read, it is read again with live, and changed
// again. Nothing is written if change has no effect. An Extension that is gone is not an error.
func Write(
	ctx context.Context, c client.Client, live client.Reader, extension *operatorv1alpha1.Extension, change func(*operatorv1alpha1.ExtensionStatus),
) error {
	first := true
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if !first {
			if err := live.Get(ctx, client.ObjectKeyFromObject(extension), extension); err != nil {
				return err
			}
		}
		first = false
		before := extension.DeepCopy()
		change(&extension.Status)
		if equality.Semantic.DeepEqual(before.Status, extension.Status) {
			return nil
		}
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		return c.Status().Patch(ctx, extension, patch, controller.FieldManager)
	})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write the status of Extension %s: %w", extension.Name, err)
	}
	return nil
}
