package managedseed

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/gardenletdeployer"
)

// delete removes what a ManagedSeed consists of, in this order: the Seed, which its gardenlet cleans up, the gardenlet, its credentials, its
// namespace, and the finalizer. It reports what is left.
func (r *reconciler) delete(ctx context.Context, managed *v1alpha1.ManagedSeed, shoot *corev1beta1.Shoot) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(managed, constants.GardenerName) {
		return reconcile.Result{}, nil
	}
	left, err := r.remove(ctx, managed, shoot)
	if err != nil {
		r.Recorder.Eventf(managed, nil, corev1.EventTypeWarning, eventDeleteFailed, "Delete", "%s", err.Error())
		return reconcile.Result{}, errors.Join(err, r.report(ctx, managed, registered(corev1beta1.ConditionFalse, reasonDeleteFailed, err.Error())))
	}
	if left != "" {
		again := reconcile.Result{RequeueAfter: r.Config.Controllers.ManagedSeed.WaitSyncPeriod.Duration}
		return again, r.report(ctx, managed, registered(corev1beta1.ConditionFalse, reasonDeleting, left))
	}
	if err := r.report(ctx, managed, registered(corev1beta1.ConditionFalse, reasonRemoved, "Nothing of the gardenlet is left in the Shoot.")); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, client.IgnoreNotFound(r.patch(ctx, managed, func() {
		controllerutil.RemoveFinalizer(managed, constants.GardenerName)
	}))
}

// remove takes the next step of the deletion. It returns what is being deleted, or an empty text if nothing is left.
func (r *reconciler) remove(ctx context.Context, managed *v1alpha1.ManagedSeed, shoot *corev1beta1.Shoot) (left string, err error) {
	seed, err := r.seedOf(ctx, managed.Name)
	if err != nil {
		return "", err
	}
	if seed != nil {
		return r.removeSeed(ctx, seed)
	}
	if shoot == nil || shoot.Status.TechnicalID == "" {
		return "", fmt.Errorf("shoot %s, which had the gardenlet, is not on this Seed", managed.Spec.Shoot.Name)
	}
	owner, namespace := ownerOf(managed), shoot.Status.TechnicalID
	if left, err := r.removeBundles(ctx, owner, namespace, false); err != nil || left != "" {
		return left, err
	}
	if err := r.removeCredentials(ctx, managed, shoot); err != nil {
		return "", err
	}
	if left, err := r.removeBundles(ctx, owner, namespace, true); err != nil || left != "" {
		return left, err
	}
	return "", flow.DeleteManifests(ctx, r.seed, r.seed, namespace, owner.Labels())
}

// removeSeed deletes a Seed. The garden refuses this while Shoots use the Seed.
func (r *reconciler) removeSeed(ctx context.Context, seed *corev1beta1.Seed) (left string, err error) {
	if seed.DeletionTimestamp != nil {
		return fmt.Sprintf("Seed %s is being deleted by its gardenlet.", seed.Name), nil
	}
	if err := client.IgnoreNotFound(r.direct.Delete(ctx, seed, client.Preconditions{UID: &seed.UID})); err != nil {
		return "", fmt.Errorf("delete Seed %s: %w", seed.Name, err)
	}
	return fmt.Sprintf("Seed %s is being deleted.", seed.Name), nil
}

// removeBundles deletes the gardenlet and, if last is set, its namespace.
func (r *reconciler) removeBundles(ctx context.Context, owner flow.Owner, namespace string, last bool) (left string, err error) {
	result, err := r.emitter.Emit(ctx, owner, deletionPlan(namespace, last))
	if err != nil {
		return "", err
	}
	remaining, err := flow.Remaining(ctx, r.seed, owner, namespace)
	if err != nil {
		return "", err
	}
	for _, key := range remaining {
		if key == gardenletKey(namespace) || last {
			if why := result.Problems[key]; why != "" {
				return "", fmt.Errorf("delete ManagedResource %s: %s", key, why)
			}
			return fmt.Sprintf("ManagedResource %s is being deleted.", key), nil
		}
	}
	return "", nil
}

// removeCredentials deletes the credentials of the gardenlet in the Shoot, and those for its first certificate in the garden.
func (r *reconciler) removeCredentials(ctx context.Context, managed *v1alpha1.ManagedSeed, shoot *corev1beta1.Shoot) error {
	connected, err := r.connect(ctx, shoot)
	if err != nil {
		return err
	}
	target := gardenletdeployer.Target{Client: connected, Namespace: constants.GardenNamespace, FieldManager: fieldManager}
	if err := target.Discard(ctx, gardenletdeployer.BootstrapSecret, gardenletdeployer.KubeconfigSecret); err != nil {
		return err
	}
	if bootstrapOf(managed) == v1alpha1.BootstrapNone {
		return nil
	}
	err = r.issuer.Revoke(ctx, managed.Namespace, managed.Name, bootstrapOf(managed))
	if apierrors.IsForbidden(err) {
		return nil // the gardenlet has deleted them itself, so that nothing permits to delete them
	}
	return err
}
