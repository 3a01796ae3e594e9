package shootvalidator

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/admission"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// movingOperation returns the operation of a move to another Seed that is not over, or nil.
func movingOperation(shoot *gardencorev1beta1.Shoot) *gardencorev1beta1.LastOperation {
	last := shoot.Status.LastOperation
	switch {
	case last == nil:
		return nil
	case last.Type == gardencorev1beta1.LastOperationTypeMigrate:
		return last
	case last.Type == gardencorev1beta1.LastOperationTypeRestore && last.State != gardencorev1beta1.LastOperationStateSucceeded:
		return last
	}
	return nil
}

// validateDeletion refuses the deletion of a Shoot that is between two Seeds: neither of them has all of its control plane.
func validateDeletion(_ context.Context, _ *admission.Request, _ *admission.Garden, _, shoot *gardencorev1beta1.Shoot) error {
	if last := movingOperation(shoot); last != nil {
		return fmt.Errorf("the Shoot moves to another Seed, and cannot be deleted before it has arrived: the operation %s is %s", last.Type, last.State)
	}
	return nil
}

// checkFrozen refuses changes of the specification of a Shoot that moves to another Seed.
func checkFrozen(_ context.Context, c *change) error {
	if c.old == nil || !c.changes() {
		return nil
	}
	last, wanted, current := movingOperation(c.old), ptr.Deref(c.old.Spec.SeedName, ""), ptr.Deref(c.old.Status.SeedName, "")
	if c.request.Subresource == subresourceBinding {
		next, _ := c.seedNames()
		return checkMove(last, wanted, current, next)
	}
	if last != nil {
		return fmt.Errorf("the Shoot moves to another Seed, and cannot change before it has arrived: the operation %s is %s", last.Type, last.State)
	}
	if current != "" && wanted != current {
		return fmt.Errorf("the Shoot is about to move from the Seed %q to %q, and cannot change before it has arrived", current, wanted)
	}
	return nil
}

// checkMove refuses another Seed for a Shoot that can not be bound to it now. A move that has not begun can be changed. One that has
// begun can only be given up, as long as the control plane has not left its Seed: its parts would be in three Seeds otherwise. A control
// plane that has arrived is restored completely before it moves on, because it has no data before that.
func checkMove(last *gardencorev1beta1.LastOperation, wanted, current, next string) error {
	switch {
	case last == nil:
		return nil
	case last.Type == gardencorev1beta1.LastOperationTypeRestore, last.State == gardencorev1beta1.LastOperationStateSucceeded:
		return fmt.Errorf("spec.seedName: the control plane is being restored on the Seed %q, and can move to another one only after that", current)
	case next != current && wanted == current:
		return fmt.Errorf("spec.seedName: the control plane is about to be restored on the Seed %q, and can move to another one only after that", current)
	case next != current:
		return fmt.Errorf("spec.seedName: the control plane is moving from the Seed %q to %q; until it has arrived, it can be bound back to %[1]q only", current, wanted)
	}
	return nil
}

// checkSeedInDeletion refuses changes of the specification of a Shoot whose Seed is being deleted, except to move it to another one.
func checkSeedInDeletion(ctx context.Context, c *change) error {
	if c.old == nil || c.old.Spec.SeedName == nil || c.request.Subresource != "" || !c.changes() {
		return nil
	}
	seed, err := c.garden.Seeds.Get(ctx, "", *c.old.Spec.SeedName)
	if apierrors.IsNotFound(err) {
		return nil // nothing is known about a Seed that is gone
	}
	if err != nil {
		return err
	}
	if seed.DeletionTimestamp != nil {
		return fmt.Errorf("the Seed %q of the Shoot is being deleted: the Shoot can be moved or deleted only", seed.Name)
	}
	return nil
}

// checkHibernation refuses to switch off a cluster that could not be switched on again.
func checkHibernation(_ context.Context, c *change) error {
	if c.old == nil || !isHibernated(&c.shoot.Spec) || isHibernated(&c.old.Spec) {
		return nil
	}
	constraint := gardencorev1beta1.FindCondition(c.old.Status.Constraints, gardencorev1beta1.ShootHibernationPossible)
	if constraint != nil && constraint.Status != gardencorev1beta1.ConditionTrue {
		return fmt.Errorf("spec.hibernation.enabled: the cluster cannot be hibernated now: its constraint %s is %s: %s", constraint.Type, constraint.Status, constraint.Message)
	}
	return nil
}

func isHibernated(spec *gardencorev1beta1.ShootSpec) bool {
	return spec.Hibernation != nil && ptr.Deref(spec.Hibernation.Enabled, false)
}
