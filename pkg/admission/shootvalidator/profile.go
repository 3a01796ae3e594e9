package shootvalidator

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/cloudprofile"
)

// profileChanges reports whether an update names another profile.
func (c *change) profileChanges() bool { return c.old != nil && differs(c, cloudprofile.ReferenceOf) }

// checkRoot checks that a Shoot stays with its CloudProfile: it can only change between the CloudProfile and NamespacedCloudProfiles
// whose parent it is.
func checkRoot(ctx context.Context, c *change) error {
	if !c.profileChanges() || cloudprofile.ReferenceOf(&c.old.Spec).Name == "" {
		return nil
	}
	before, err := c.garden.ProfileOf(ctx, c.request.Namespace, &c.old.Spec)
	if err != nil {
		return fmt.Errorf("the profile that the Shoot has now: %w", err)
	}
	if before.Root != c.profile.Root {
		return fmt.Errorf("spec.cloudProfile: the Shoot uses the CloudProfile %q or a NamespacedCloudProfile of it, and cannot move to %q",
			before.Root, c.profile.Root)
	}
	return nil
}

// keptOffers checks that another profile has all that the pools use already.
func (c *change) keptOffers() field.ErrorList {
	if !c.profileChanges() {
		return nil
	}
	var errs field.ErrorList
	for i := range c.shoot.Spec.Provider.Workers {
		worker, path := &c.shoot.Spec.Provider.Workers[i], field.NewPath("spec", "provider", "workers").Index(i)
		if cloudprofile.FindMachineType(c.profile.Spec, worker.Machine.Type) == nil {
			errs = append(errs, field.Invalid(path.Child("machine", "type"), worker.Machine.Type, "the other profile does not have this machine type"))
		}
		if image := worker.Machine.Image; image != nil && image.Version != nil &&
			cloudprofile.FindImageVersion(cloudprofile.FindImage(c.profile.Spec, image.Name), *image.Version) == nil {
			errs = append(errs, field.Invalid(path.Child("machine", "image"), image.Name+" "+*image.Version, "the other profile does not have this machine image"))
		}
		if worker.Volume != nil && worker.Volume.Type != nil && cloudprofile.FindVolumeType(c.profile.Spec, *worker.Volume.Type) == nil {
			errs = append(errs, field.Invalid(path.Child("volume", "type"), *worker.Volume.Type, "the other profile does not have this volume type"))
		}
	}
	return errs
}

// providerType checks that a Shoot is on the infrastructure of its profile.
func (c *change) providerType() field.ErrorList {
	if !differs(c, cloudprofile.ReferenceOf) && !differs(c, func(spec *gardencorev1beta1.ShootSpec) string { return spec.Provider.Type }) {
		return nil
	}
	if own := c.shoot.Spec.Provider.Type; own != c.profile.Spec.Type {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "provider", "type"), own, fmt.Sprintf("the CloudProfile is for the type %q", c.profile.Spec.Type))}
	}
	return nil
}

// nodesTotal checks that the pools do not need more nodes than the profile allows. An existing Shoot may keep its number.
func (c *change) nodesTotal() field.ErrorList {
	limits := c.profile.Spec.Limits
	if limits == nil || limits.MaxNodesTotal == nil {
		return nil
	}
	total := leastNodes(&c.shoot.Spec)
	if total <= int64(*limits.MaxNodesTotal) || c.old != nil && !c.profileChanges() && total <= leastNodes(&c.old.Spec) {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec", "provider", "workers"), fmt.Sprintf(
		"the minimums of all pools add up to %d nodes, but the CloudProfile allows %d", total, *limits.MaxNodesTotal))}
}

func leastNodes(spec *gardencorev1beta1.ShootSpec) int64 {
	total := int64(0)
	for i := range spec.Provider.Workers {
		total += int64(spec.Provider.Workers[i].Minimum)
	}
	return total
}
