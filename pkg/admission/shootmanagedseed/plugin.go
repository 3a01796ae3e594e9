// Package shootmanagedseed is an admission plugin of the garden's API. A Shoot that is a Seed keeps what the Seed needs, and is
// not deleted.
package shootmanagedseed

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/admission"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	seedmanagementv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// Plugin is the plugin.
var Plugin = admission.Plugin{
	Name: "ShootManagedSeed",
	Rules: []admission.Rule{
		{Resource: gardencorev1beta1.Resource("shoots"), Operations: admission.OnUpdate, Validate: admission.On(validate)},
		{Resource: gardencorev1beta1.Resource("shoots"), Operations: admission.OnDelete, Validate: admission.On(validateDeletion)},
	},
}

// validate judges only what an update takes away. ManagedSeeds are in the namespace garden, so other Shoots need no facts.
func validate(ctx context.Context, request *admission.Request, garden *admission.Garden, shoot, old *gardencorev1beta1.Shoot) error {
	if request.Namespace != constants.GardenNamespace || shoot.DeletionTimestamp != nil || equality.Semantic.DeepEqual(shoot.Spec, old.Spec) {
		return nil
	}
	seeds, err := garden.ManagedSeeds.By(ctx, admission.ManagedSeedsByShoot, admission.Key(request.Namespace, shoot.Name))
	if err != nil || len(seeds) == 0 {
		return err
	}
	return request.Invalid(refused(&shoot.Spec, &old.Spec, seeds[0]))
}

// refused returns an error for each setting that the Seed needs and an update takes away.
func refused(spec, old *gardencorev1beta1.ShootSpec, seed *seedmanagementv1alpha1.ManagedSeed) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec")
	why := fmt.Sprintf("the Shoot is the Seed of the ManagedSeed %q", seed.Name)
	if admission.NginxEnabled(spec) && !admission.NginxEnabled(old) {
		errs = append(errs, field.Invalid(path.Child("addons", "nginxIngress", "enabled"), true, "must be false: "+why+", which has an ingress controller of its own"))
	}
	if !admission.AutoscalerEnabled(spec) && admission.AutoscalerEnabled(old) {
		errs = append(errs, field.Invalid(path.Child("kubernetes", "verticalPodAutoscaler", "enabled"), false, "must be true: "+why))
	}
	if old.Networking != nil && (spec.Networking == nil || !equality.Semantic.DeepEqual(spec.Networking.Nodes, old.Networking.Nodes)) {
		errs = append(errs, field.Invalid(path.Child("networking", "nodes"), field.OmitValueType{}, "must not change: "+why))
	}
	// A configuration that cannot be read is an error of the ManagedSeed, not of the Shoot.
	template, err := admission.SeedOf(seed)
	if err != nil {
		return errs
	}
	gone := sets.New(admission.Zones(old)...).Difference(sets.New(admission.Zones(spec)...))
	if used := sets.List(gone.Intersection(sets.New(template.Spec.Provider.Zones...))); len(used) > 0 {
		errs = append(errs, field.Forbidden(path.Child("providers", "workers"), fmt.Sprintf("the zones %v must stay: %s, which uses them", used, why)))
	}
	return errs
}

// validateDeletion reads live before it finds no ManagedSeed, because the deletion of a Shoot cannot be taken back.
func validateDeletion(ctx context.Context, request *admission.Request, garden *admission.Garden, _, shoot *gardencorev1beta1.Shoot) error {
	if request.Namespace != constants.GardenNamespace {
		return nil
	}
	seeds := &seedmanagementv1alpha1.ManagedSeedList{}
	if err := garden.ListLive(ctx, seeds, request.Namespace); err != nil {
		return err
	}
	i := slices.IndexFunc(seeds.Items, func(seed seedmanagementv1alpha1.ManagedSeed) bool {
		return seed.Spec.Shoot != nil && seed.Spec.Shoot.Name == shoot.Name
	})
	if i < 0 {
		return nil
	}
	return fmt.Errorf("the Shoot is the Seed of the ManagedSeed %q: delete the ManagedSeed first", seeds.Items[i].Name)
}
