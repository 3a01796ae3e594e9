package installation

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// uninstall deletes, in this order: the ManagedResource with all objects, the Secrets with manifests, the ServiceAccount
// in the garden, and the finalizer. It does not need the chart. The watches trigger each step.
func (r *reconciler) uninstall(ctx context.Context, installation *corev1beta1.ControllerInstallation) error {
	if !controllerutil.ContainsFinalizer(installation, constants.FinalizerControllerInstallation) {
		return nil
	}
	key, owner := keyOf(r.Namespace, installation.Name), ownerOf(installation)
	live, err := r.managedResource(ctx, key)
	if err != nil {
		return err
	}
	result, err := r.emitter.Emit(ctx, owner, deletion(key, live))
	if err != nil {
		return err
	}
	if why := result.Problems[key]; why != "" {
		return r.report(ctx, installation, []finding{notInstalled(reasonDeletionFailed, why)})
	}
	left, err := flow.Remaining(ctx, r.uncached, owner, r.Namespace)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return r.report(ctx, installation, []finding{notInstalled(reasonDeletionPending, pendingText(live))})
	}
	if err := flow.DeleteManifests(ctx, r.uncached, r.seed, r.Namespace, owner.Labels()); err != nil {
		return err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: constants.PrefixSeedNamespace + r.SeedName, Name: accountName(installation.Name),
	}}
	if err := client.IgnoreNotFound(r.garden.Delete(ctx, account)); err != nil {
		return fmt.Errorf("delete ServiceAccount %s of the garden: %w", client.ObjectKeyFromObject(account), err)
	}
	deleted := notInstalled(reasonDeletionSucceeded, "Nothing of the extension is left in the seed.")
	if err := r.report(ctx, installation, []finding{deleted}); err != nil {
		return err
	}
	return r.patch(ctx, installation, func() { controllerutil.RemoveFinalizer(installation, constants.FinalizerControllerInstallation) })
}

func notInstalled(reason, message string) finding {
	return finding{corev1beta1.ControllerInstallationInstalled, corev1beta1.ConditionFalse, reason, message}
}

// pendingText returns the progress of the deletion of the objects.
func pendingText(live *resourcesv1alpha1.ManagedResource) string {
	const text = "The objects of the extension are being deleted."
	if live == nil || live.DeletionTimestamp == nil {
		return text
	}
	if applied := resourcesv1alpha1.ConditionOf(live.Status.Conditions, resourcesv1alpha1.ResourcesApplied); applied.Message != "" {
		return text + " " + applied.Message
	}
	return text
}
