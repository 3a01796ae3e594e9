// Package seedvalidator is an admission plugin of the garden's API. A Seed keeps what its Shoots use, and exists as long as they
// use it.
package seedvalidator

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/trellis-k8s/trellis/pkg/admission"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// Plugin is the plugin.
var Plugin = admission.Plugin{
	Name: "SeedValidator",
	Rules: []admission.Rule{
		{Resource: gardencorev1beta1.Resource("seeds"), Operations: admission.OnCreateOrUpdate, Validate: admission.On(validate)},
		{Resource: gardencorev1beta1.Resource("seeds"), Operations: admission.OnDelete, Validate: admission.On(validateDeletion)},
	},
}

func validate(ctx context.Context, _ *admission.Request, garden *admission.Garden, seed, old *gardencorev1beta1.Seed) error {
	if seed.DeletionTimestamp != nil {
		return nil
	}
	if backup := seed.Spec.Backup; backup != nil && (old == nil || !equality.Semantic.DeepEqual(old.Spec.Backup, backup)) {
		if err := garden.CheckIdentityType(ctx, backup.CredentialsRef, backup.Provider); err != nil {
			return fmt.Errorf("spec.backup.credentialsRef: %w", err)
		}
	}
	if old == nil {
		return nil
	}
	return CheckUpdate(ctx, garden, seed.Name, &seed.Spec, &old.Spec)
}

// CheckUpdate returns an error if an update of the Seed with a name takes away what its Shoots use.
func CheckUpdate(ctx context.Context, garden *admission.Garden, name string, updated, old *gardencorev1beta1.SeedSpec) error {
	removed := compare(updated, old)
	if removed.nothing() {
		return nil
	}
	shoots, err := garden.ShootsOn(ctx, name)
	if err != nil {
		return err
	}
	return removed.refused(shoots)
}

func validateDeletion(ctx context.Context, _ *admission.Request, garden *admission.Garden, _, seed *gardencorev1beta1.Seed) error {
	shoots, err := garden.ShootsOn(ctx, seed.Name)
	if err != nil || len(shoots) == 0 {
		return err
	}
	return fmt.Errorf("%d Shoots use the Seed, such as %s/%s: delete or move them first", len(shoots), shoots[0].Namespace, shoots[0].Name)
}
