// Package finalizerremoval is an admission plugin of the garden's API. The finalizer of Gardener protects what Shoots use, and
// the control planes of Shoots: it stays until they are gone.
package finalizerremoval

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-k8s/trellis/pkg/admission"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
)

// allDone is the progress of a finished operation.
const allDone = 100

// Plugin is the plugin.
var Plugin = admission.Plugin{
	Name: "FinalizerRemoval",
	Rules: []admission.Rule{
		{Resource: gardencorev1beta1.Resource("shoots"), Operations: admission.OnUpdate, Validate: admission.On(validateShoot)},
		{
			Resource: gardencorev1beta1.Resource("secretbindings"), Operations: admission.OnUpdate,
			Validate: admission.On(func(ctx context.Context, _ *admission.Request, garden *admission.Garden, binding, old *gardencorev1beta1.SecretBinding) error {
				return validateBinding(ctx, garden, binding, old, admission.KindSecretBinding)
			}),
		},
		{
			Resource: securityv1alpha1.Resource("credentialsbindings"), Operations: admission.OnUpdate,
			Validate: admission.On(func(ctx context.Context, _ *admission.Request, garden *admission.Garden, binding, old *securityv1alpha1.CredentialsBinding) error {
				return validateBinding(ctx, garden, binding, old, admission.KindCredentialsBinding)
			}),
		},
	},
}

func removed(updated, old metav1.Object) bool {
	return slices.Contains(old.GetFinalizers(), constants.GardenerName) && !slices.Contains(updated.GetFinalizers(), constants.GardenerName)
}

// validateBinding reads the Shoots of the namespace live, because a Shoot without its binding cannot be deleted.
func validateBinding(ctx context.Context, garden *admission.Garden, binding, old metav1.Object, kind string) error {
	if !removed(binding, old) {
		return nil
	}
	shoots := &gardencorev1beta1.ShootList{}
	if err := garden.ListLive(ctx, shoots, binding.GetNamespace()); err != nil {
		return err
	}
	key := admission.BindingKey(kind, binding.GetNamespace(), binding.GetName())
	for i := range shoots.Items {
		if slices.Contains(admission.ShootsByBinding.Keys(&shoots.Items[i]), key) {
			return fmt.Errorf("metadata.finalizers: %q cannot be removed while the Shoot %q uses the %s: delete the Shoot, or give it another one",
				constants.GardenerName, shoots.Items[i].Name, kind)
		}
	}
	return nil
}

// validateShoot judges the stored status. It needs no other objects.
func validateShoot(_ context.Context, _ *admission.Request, _ *admission.Garden, shoot, old *gardencorev1beta1.Shoot) error {
	if !removed(shoot, old) || isGone(&old.Status) {
		return nil
	}
	return fmt.Errorf("metadata.finalizers: %q cannot be removed before the deletion of the Shoot has succeeded, because its control plane would be left behind",
		constants.GardenerName)
}

// isGone reports whether a Shoot has no control plane.
func isGone(status *gardencorev1beta1.ShootStatus) bool {
	operation := status.LastOperation
	return status.TechnicalID == "" || operation == nil || operation.Type == gardencorev1beta1.LastOperationTypeDelete &&
		operation.State == gardencorev1beta1.LastOperationStateSucceeded && operation.Progress == allDone
}
