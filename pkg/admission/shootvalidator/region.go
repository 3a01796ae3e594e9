package shootvalidator

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/cloudprofile"
)

// region checks that the profile has the region of a Shoot.
func (c *change) region() field.ErrorList {
	name := c.shoot.Spec.Region
	changed := differs(c, func(spec *gardencorev1beta1.ShootSpec) string { return spec.Region }) || differs(c, cloudprofile.ReferenceOf)
	if !changed || cloudprofile.FindRegion(c.profile.Spec, name) != nil {
		return nil
	}
	var names []string
	for i := range c.profile.Spec.Regions {
		names = append(names, c.profile.Spec.Regions[i].Name)
	}
	return field.ErrorList{field.NotSupported(field.NewPath("spec", "region"), name, names)}
}

// accessRestrictions checks that the region has the access restrictions that a request adds.
func (c *change) accessRestrictions() field.ErrorList {
	region := cloudprofile.FindRegion(c.profile.Spec, c.shoot.Spec.Region)
	if region == nil {
		return nil
	}
	var errs field.ErrorList
	for i, wanted := range c.shoot.Spec.AccessRestrictions {
		isKept := c.old != nil && slices.ContainsFunc(c.old.Spec.AccessRestrictions, func(one gardencorev1beta1.AccessRestrictionWithOptions) bool {
			return one.Name == wanted.Name
		})
		if !isKept && !slices.Contains(region.AccessRestrictions, wanted.AccessRestriction) {
			errs = append(errs, field.Invalid(field.NewPath("spec", "accessRestrictions").Index(i).Child("name"), wanted.Name,
				fmt.Sprintf("the CloudProfile does not have this restriction in the region %q", region.Name)))
		}
	}
	return errs
}

// zonePinning checks that the profile lets Shoots choose the zones of their control plane.
func (c *change) zonePinning() field.ErrorList {
	zones := zonesOfControlPlane(&c.shoot.Spec)
	if len(zones) == 0 || !differs(c, zonesOfControlPlane) || c.profile.Spec.ControlPlane != nil && c.profile.Spec.ControlPlane.AllowZonePinning {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec", "controlPlane", "zones"), "the CloudProfile does not let Shoots choose the zones of their control plane")}
}

func zonesOfControlPlane(spec *gardencorev1beta1.ShootSpec) []string {
	if spec.ControlPlane == nil {
		return nil
	}
	return spec.ControlPlane.Zones
}
