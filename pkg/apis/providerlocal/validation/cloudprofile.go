package validation

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/providerlocal/v1alpha1"
)

// ValidateCloudProfileConfig checks the provider configuration of a CloudProfile with these machine images. Each version
// must have a container image.
func ValidateCloudProfileConfig(
	config *v1alpha1.CloudProfileConfig, images []gardencorev1beta1.MachineImage, path *field.Path,
) field.ErrorList {
	var errs field.ErrorList
	known := map[string]sets.Set[string]{}
	path = path.Child("machineImages")
	for i, image := range config.MachineImages {
		at := path.Index(i)
		if image.Name == "" {
			errs = append(errs, field.Required(at.Child("name"), "must be the name of a machine image"))
		}
		if _, found := known[image.Name]; found {
			errs = append(errs, field.Duplicate(at.Child("name"), image.Name))
			continue
		}
		known[image.Name] = sets.New[string]()
		if len(image.Versions) == 0 {
			errs = append(errs, field.Required(at.Child("versions"), "must have a version"))
		}
		for j, version := range image.Versions {
			errs = append(errs, validateVersion(version, known[image.Name], at.Child("versions").Index(j))...)
		}
	}
	for _, image := range images {
		for _, version := range image.Versions {
			if !known[image.Name].Has(version.Version) {
				errs = append(errs, field.Required(path,
					fmt.Sprintf("must have an entry for version %s of the machine image %s", version.Version, image.Name)))
			}
		}
	}
	return errs
}

func validateVersion(version v1alpha1.MachineImageVersion, known sets.Set[string], path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case version.Version == "":
		errs = append(errs, field.Required(path.Child("version"), "must be a version of the machine image"))
	case known.Has(version.Version):
		errs = append(errs, field.Duplicate(path.Child("version"), version.Version))
	}
	known.Insert(version.Version)
	if version.Image == "" {
		errs = append(errs, field.Required(path.Child("image"), "must be the container image of the machines"))
	}
	return errs
}

// FindImage returns the container image of a version of a machine image. It returns false if the configuration does not
// have it.
func FindImage(config *v1alpha1.CloudProfileConfig, name, version string) (string, bool) {
	if config == nil {
		return "", false
	}
	for _, image := range config.MachineImages {
		if image.Name != name {
			continue
		}
		at := slices.IndexFunc(image.Versions, func(v v1alpha1.MachineImageVersion) bool { return v.Version == version })
		if at >= 0 {
			return image.Versions[at].Image, true
		}
	}
	return "", false
}
