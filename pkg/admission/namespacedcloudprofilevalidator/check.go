package namespacedcloudprofilevalidator

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/validation"
	"github.com/trellis-k8s/trellis/pkg/cloudprofile"
)

// check compares a profile with its parent. What the old profile has already is not judged again, so that a change of the parent does
// not block other changes of the profile.
type check struct {
	parent   *gardencorev1beta1.CloudProfileSpec
	own, old *gardencorev1beta1.NamespacedCloudProfileSpec
	now      time.Time
}

// all returns what is wrong. The result of a merge is only judged if nothing else is wrong.
func (c *check) all() field.ErrorList {
	path := field.NewPath("spec")
	errs := c.kubernetes(path.Child("kubernetes", "versions"))
	errs = append(errs, c.images(path.Child("machineImages"))...)
	errs = append(errs, c.machines(path.Child("machineTypes"))...)
	if len(errs) > 0 {
		return errs
	}
	return c.merged(path)
}

// kubernetes checks that versions of Kubernetes are those of the parent, with another expiration.
func (c *check) kubernetes(path *field.Path) field.ErrorList {
	if c.own.Kubernetes == nil {
		return nil
	}
	var errs field.ErrorList
	for i := range c.own.Kubernetes.Versions {
		version, at := &c.own.Kubernetes.Versions[i], path.Index(i)
		var before *gardencorev1beta1.ExpirableVersion
		if c.old.Kubernetes != nil {
			before = find(c.old.Kubernetes.Versions, version.Version)
		}
		if before != nil && equality.Semantic.DeepEqual(before, version) {
			continue
		}
		if find(c.parent.Kubernetes.Versions, version.Version) == nil {
			errs = append(errs, field.Invalid(at.Child("version"), version.Version, "the parent does not have this version"))
		}
		errs = append(errs, c.expiration(version, before, at)...)
	}
	return errs
}

func find(versions []gardencorev1beta1.ExpirableVersion, name string) *gardencorev1beta1.ExpirableVersion {
	i := slices.IndexFunc(versions, func(one gardencorev1beta1.ExpirableVersion) bool { return one.Version == name })
	if i < 0 {
		return nil
	}
	return &versions[i]
}

// expiration checks that an override of a version states when it expires, and that an update does not move this to the past.
func (c *check) expiration(version, before *gardencorev1beta1.ExpirableVersion, path *field.Path) field.ErrorList {
	if len(version.Lifecycle) > 0 {
		return nil
	}
	at := path.Child("expirationDate")
	if version.ExpirationDate == nil {
		return field.ErrorList{field.Required(at, "it is the only field of a version that can be overridden")}
	}
	if before != nil && !version.ExpirationDate.After(c.now) && !version.ExpirationDate.Equal(before.ExpirationDate) {
		return field.ErrorList{field.Invalid(at, version.ExpirationDate.Format(time.RFC3339), "must not be moved to the past")}
	}
	return nil
}

// images checks that versions of images which the parent has, too, state only another expiration.
func (c *check) images(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range c.own.MachineImages {
		image := &c.own.MachineImages[i]
		parent, old := findImage(c.parent.MachineImages, image.Name), findImage(c.old.MachineImages, image.Name)
		for j := range image.Versions {
			version, at := &image.Versions[j], path.Index(i).Child("versions").Index(j)
			before := findImageVersion(old, version.Version)
			if findImageVersion(parent, version.Version) == nil || before != nil && equality.Semantic.DeepEqual(before, version) {
				continue
			}
			if !cloudprofile.OverridesOnlyExpiration(version) || version.InPlaceUpdates != nil {
				errs = append(errs, field.Forbidden(at, "the parent has this version: only its expiration can be overridden"))
				continue
			}
			var expirable *gardencorev1beta1.ExpirableVersion
			if before != nil {
				expirable = &before.ExpirableVersion
			}
			errs = append(errs, c.expiration(&version.ExpirableVersion, expirable, at)...)
		}
	}
	return errs
}

func findImage(images []gardencorev1beta1.MachineImage, name string) *gardencorev1beta1.MachineImage {
	i := slices.IndexFunc(images, func(one gardencorev1beta1.MachineImage) bool { return one.Name == name })
	if i < 0 {
		return nil
	}
	return &images[i]
}

func findImageVersion(image *gardencorev1beta1.MachineImage, name string) *gardencorev1beta1.MachineImageVersion {
	if image == nil {
		return nil
	}
	i := slices.IndexFunc(image.Versions, func(one gardencorev1beta1.MachineImageVersion) bool { return one.Version == name })
	if i < 0 {
		return nil
	}
	return &image.Versions[i]
}

// machines checks that machine types are not those of the parent.
func (c *check) machines(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	has := func(machines []gardencorev1beta1.MachineType, name string) bool {
		return slices.ContainsFunc(machines, func(one gardencorev1beta1.MachineType) bool { return one.Name == name })
	}
	for i, machine := range c.own.MachineTypes {
		if has(c.parent.MachineTypes, machine.Name) && !has(c.old.MachineTypes, machine.Name) {
			errs = append(errs, field.Forbidden(path.Index(i).Child("name"), fmt.Sprintf("the parent has the machine type %q, which cannot be overridden", machine.Name)))
		}
	}
	return errs
}

// merged checks the result of the merge. What is wrong with the parent alone is not the fault of the profile.
func (c *check) merged(path *field.Path) field.ErrorList {
	own := c.own.DeepCopy()
	own.MachineImages = slices.DeleteFunc(own.MachineImages, func(image gardencorev1beta1.MachineImage) bool {
		return len(image.Versions) == 0 && image.UpdateStrategy == nil // the API server does not store them
	})
	known := map[string]bool{}
	for _, before := range []gardencorev1beta1.CloudProfileSpec{*c.parent, cloudprofile.Merge(c.parent, c.old)} {
		for _, err := range validation.ValidateCloudProfileSpec(&before, path) {
			known[err.Error()] = true
		}
	}
	merged := cloudprofile.Merge(c.parent, own)
	var errs field.ErrorList
	for _, err := range validation.ValidateCloudProfileSpec(&merged, path) {
		if !known[err.Error()] {
			errs = append(errs, field.Invalid(path, err.Error(), "the parent with the changes of this profile is not valid"))
		}
	}
	return errs
}
