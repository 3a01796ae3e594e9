package shoot

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/requeue"
)

const (
	// rightsWithin is how long gardenlet waits for its rights for a Shoot. The controller-manager of the garden usually grants them within
	// seconds, and API servers remember a refusal for ten seconds. Longer means that the controller-manager does not run.
	rightsWithin = 3 * time.Minute
	// rightsAgain is how often a Shoot that waits for rights is reconciled. No watch reports rights.
	rightsAgain = 5 * time.Second
	// namesPolicy is the policy of gardenlet's chart that lets a gardenlet create only objects that it may also change.
	namesPolicy = "ValidatingAdmissionPolicy 'names.gardenlet.gardener.cloud'"
)

// lacksRights returns a function that reports whether the garden has refused a request because the gardenlet of a Seed has no right for
// it. The API server reports this only as text. Other policies of the garden, and the seed, also refuse requests.
func lacksRights(seedName string) func(error) bool {
	user := fmt.Sprintf("User %q cannot ", constants.PrefixSeedUser+seedName)
	return func(err error) bool {
		return apierrors.IsForbidden(err) && (strings.Contains(err.Error(), user) || strings.Contains(err.Error(), namesPolicy))
	}
}

// roleOf returns the name of the Role that grants a gardenlet its rights in the namespace of a Shoot.
func roleOf(seedName string) string {
	return constants.PrefixSeedUser + seedName + ":" + constants.RoleGardenletRights
}

// awaitsRights reports whether a pass has failed only because gardenlet does not have its rights for the Shoot yet. It remembers since
// when. After [rightsWithin], the failure is an error.
func (p *pass) awaitsRights(failure error) bool {
	lacks := lacksRights(p.options.SeedName)
	awaits := failure != nil && requeue.OnlyOf(failure, func(err error) bool { return lacks(err) || apierrors.IsConflict(err) }) && !requeue.OnlyConflicts(failure)
	return p.unpermitted.Within(p.shoot.UID, awaits, p.Wake.Now, rightsWithin)
}

// awaitRights reports that the Shoot waits for gardenlet's rights.
func (p *pass) awaitRights(ctx context.Context, failure error) (reconcile.Result, error) {
	if err := p.write(ctx, p.shoot, p.waitsForRights(p.shoot, failure)); err != nil {
		return reconcile.Result{}, err
	}
	p.Wake.In(rightsAgain)
	return p.Wake.Result(), nil
}

// waitsForRights returns the status of a Shoot while gardenlet does not have its rights for it. An operation that has succeeded remains.
func (r *reconciler) waitsForRights(shoot *corev1beta1.Shoot, failure error) corev1beta1.ShootStatus {
	status := *shoot.Status.DeepCopy()
	next := corev1beta1.LastOperation{Type: operationType(shoot), State: corev1beta1.LastOperationStatePending}
	if last := status.LastOperation; last != nil {
		if last.State == corev1beta1.LastOperationStateSucceeded && !isUnfinished(shoot) {
			return status
		}
		next = *last
		if next.State != corev1beta1.LastOperationStatePending {
			next.State = corev1beta1.LastOperationStateProcessing
		}
	}
	next.Description = fmt.Sprintf("Waiting: the controller-manager of the garden has not granted gardenlet its rights for this Shoot yet (%v).", failure)
	if status.LastOperation == nil || next != *status.LastOperation {
		next.LastUpdateTime = metav1.NewTime(r.options.Clock.Now())
		status.LastOperation = &next
	}
	return status
}

// withRole adds to a failure the Role that gardenlet misses.
func (r *reconciler) withRole(shoot *corev1beta1.Shoot, failure error) error {
	if !anyOf(failure, lacksRights(r.options.SeedName)) {
		return failure
	}
	return fmt.Errorf("%w: the controller-manager of the garden maintains these rights in Role %s/%s: check that its controller gardenlet-rights runs",
		failure, shoot.Namespace, roleOf(r.options.SeedName))
}

// anyOf reports whether a part of an error is of a kind.
func anyOf(err error, is func(error) bool) bool {
	return !requeue.OnlyOf(err, func(part error) bool { return !is(part) })
}
