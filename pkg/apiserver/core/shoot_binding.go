package core

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/validation"
	"github.com/trellis-k8s/trellis/pkg/apiserver/registry"
)

// binding is the subresource that assigns a Shoot to a Seed.
type binding struct{ *registry.Subresource }

var _ rest.ResetFieldsFilterStrategy = binding{}

func newBinding(main *registry.Storage[shoot]) binding {
	return binding{main.Subresource(bindingStrategy{main.Strategy()})}
}

// GetResetFieldsFilter implements rest.ResetFieldsFilterStrategy. The applier of a binding owns only the name of the
// Seed.
func (binding) GetResetFieldsFilter() map[fieldpath.APIVersion]fieldpath.Filter {
	seedName := fieldpath.NewIncludeMatcherFilter(fieldpath.MakePrefixMatcherOrDie("spec", "seedName"))
	return map[fieldpath.APIVersion]fieldpath.Filter{fieldpath.APIVersion(gardencorev1beta1.SchemeGroupVersion.String()): seedName}
}

type bindingStrategy struct{ rest.RESTUpdateStrategy }

// PrepareForUpdate implements rest.RESTUpdateStrategy. Only the name of the Seed changes.
func (bindingStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	bind(obj.(shoot), old.(shoot))
}

// ValidateUpdate implements rest.RESTUpdateStrategy. The rules for updates apply, except that the Seed can change.
func (b bindingStrategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	bound, stored := obj.(shoot), old.(shoot)
	moved := stored.DeepCopy()
	moved.Spec.SeedName = bound.Spec.SeedName
	return append(validation.ValidateShootBinding(bound, stored), b.RESTUpdateStrategy.ValidateUpdate(ctx, obj, moved)...)
}

// WarningsOnUpdate implements rest.RESTUpdateStrategy. It returns no warnings, because schedulers cannot change the
// fields in question.
func (bindingStrategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// bind replaces an updated Shoot with the stored one, except for the Seed and the networks that it inherits. The first assignment removes the last
// operation with which the scheduler reported that it found no Seed. Each other one removes the constraint ReadyForMigration, which is about
// the previous destination: the control plane would begin to leave for one that may not be ready.
func bind(updated, stored shoot) {
	seedName, managedFields, resourceVersion := updated.Spec.SeedName, updated.ManagedFields, updated.ResourceVersion
	networking := updated.Spec.Networking
	*updated = *stored.DeepCopy()
	inheritNetworks(updated, networking)
	updated.Spec.SeedName, updated.ManagedFields, updated.ResourceVersion = seedName, managedFields, resourceVersion
	if operation := updated.Status.LastOperation; stored.Spec.SeedName == nil && seedName != nil && operation != nil &&
		operation.Type == gardencorev1beta1.LastOperationTypeCreate && operation.State == gardencorev1beta1.LastOperationStatePending {
		updated.Status.LastOperation = nil
	}
	if text(seedName) != text(stored.Spec.SeedName) {
		updated.Generation++
		updated.Status.Constraints = slices.DeleteFunc(updated.Status.Constraints, func(constraint gardencorev1beta1.Condition) bool {
			return constraint.Type == gardencorev1beta1.ShootReadyForMigration
		})
	}
}

// inheritNetworks sets the networks that a Shoot lacks, and that admission took over from its Seed.
func inheritNetworks(shoot shoot, inherited *gardencorev1beta1.Networking) {
	if inherited == nil || shoot.Spec.SeedName != nil {
		return
	}
	if shoot.Spec.Networking == nil {
		shoot.Spec.Networking = &gardencorev1beta1.Networking{}
	}
	networking := shoot.Spec.Networking
	if networking.Pods == nil {
		networking.Pods = inherited.Pods
	}
	if networking.Services == nil {
		networking.Services = inherited.Services
	}
}
