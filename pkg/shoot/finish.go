package shoot

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/rotation"
	"github.com/trellis-k8s/trellis/pkg/shoot/restoredgarden"
)

// finish removes the finalizer of the Shoot once nothing of its control plane is left and no step has failed.
func (p *pass) finish(ctx context.Context, succeeded bool) error {
	r, shoot, in := p.reconciler, p.shoot, p.in
	if in.forced() {
		if err := r.finalizeContents(ctx, in); err != nil {
			return err
		}
	}
	if len(in.Emitted) > 0 || !succeeded {
		return nil // watches report when they are deleted
	}
	left, err := flow.Remaining(ctx, r.uncached, in.Owner, in.GardenNamespace, in.Namespace)
	if err != nil || len(left) > 0 {
		return err
	}
	// The Secrets with manifests in the namespace of the control plane were deleted with the namespace.
	manifests := flow.DeleteManifests(ctx, r.uncached, r.seed, in.GardenNamespace, in.Owner.Labels())
	if err := errors.Join(manifests, r.states.Delete(ctx, shoot), r.withdrawIssuer(ctx, in), r.remember(ctx, shoot, restoredgarden.Deleted)); err != nil {
		return err
	}
	status := *shoot.Status.DeepCopy()
	status.LastErrors, status.RetryCycleStartTime = nil, nil
	status.LastOperation.State, status.LastOperation.Progress = corev1beta1.LastOperationStateSucceeded, 100
	status.LastOperation.Description = nameOf(corev1beta1.LastOperationTypeDelete) + " finished"
	if err := r.write(ctx, shoot, status); err != nil {
		return err
	}
	r.events.Eventf(shoot, nil, corev1.EventTypeNormal, eventDeleted, actionDelete, "The control plane is deleted")
	if err := r.removeFinalizer(ctx, shoot); err != nil {
		return err
	}
	r.forget(in)
	return nil
}

// removeFinalizer removes gardenlet's finalizer. It retries conflicts: the care controller writes conditions as soon as
// the state of the operation changes. Reporting such a conflict would change the state, and with it the conditions,
// again.
func (r *reconciler) removeFinalizer(ctx context.Context, shoot *corev1beta1.Shoot) error {
	uid := shoot.UID
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		err := r.patch(ctx, shoot, func() { controllerutil.RemoveFinalizer(shoot, constants.GardenerName) })
		if !apierrors.IsConflict(err) {
			return err
		}
		if read := r.states.GardenReader.Get(ctx, client.ObjectKeyFromObject(shoot), shoot); read != nil {
			return client.IgnoreNotFound(read)
		}
		if shoot.UID != uid {
			return nil // the Shoot was deleted, and another one has its name
		}
		return err
	})
}

// release ends the watches of objects of the garden for a Shoot, and its metrics.
func (r *reconciler) release(shoot client.ObjectKey) {
	r.objects.Release(userOf(shoot))
	r.objects.Release(copiesOf(shoot))
	flow.Forget(FlowName, shoot.Namespace, shoot.Name)
}

// forget removes a deleted Shoot from memory, except what was written last: until the cache shows it, the Shoot must not be deleted again.
// Another Shoot may have its name by then.
func (r *reconciler) forget(in Inputs) {
	r.ledgers.Forget(in.ledgerKey())
	r.release(client.ObjectKeyFromObject(in.Shoot))
	r.rewrites.Keep(in.Owner.UID, rotation.Position{})
	r.unpermitted.Forget(in.Owner.UID)
	r.troubled.Forget(in.Owner.UID)
	r.orphans.see(client.ObjectKeyFromObject(in.Shoot), false, in.Now) // one with this name may have existed before
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.copied, in.Owner.UID)
	delete(r.asked, in.Owner.UID)
	delete(r.reports, in.Owner.UID)
	delete(r.owners, in.Namespace)
}
