package validation

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// period is a time between a start and an end. The zero value of either means no limit.
type period struct{ begin, end time.Time }

func (p period) overlaps(other period) bool {
	return (p.end.IsZero() || other.begin.Before(p.end)) && (other.end.IsZero() || p.begin.Before(other.end))
}

// supportedPeriod returns the period in which a version is classified as supported, if there is one. It ignores the
// default classification of a version without a lifecycle.
func supportedPeriod(version *v1beta1.ExpirableVersion) (period, bool) {
	if len(version.Lifecycle) == 0 {
		return period{}, version.Classification != nil && *version.Classification == v1beta1.ClassificationSupported
	}
	i := slices.IndexFunc(version.Lifecycle, func(stage v1beta1.LifecycleStage) bool {
		return stage.Classification == v1beta1.ClassificationSupported
	})
	if i < 0 {
		return period{}, false
	}
	var found period
	if start := version.Lifecycle[i].StartTime; start != nil {
		found.begin = start.Time
	}
	if i+1 < len(version.Lifecycle) && version.Lifecycle[i+1].StartTime != nil {
		found.end = version.Lifecycle[i+1].StartTime.Time
	}
	return found, true
}

// ValidateCloudProfileStages checks that an update of a CloudProfile does not withdraw versions that users might already
// use.
func ValidateCloudProfileStages(profile, old *v1beta1.CloudProfile, now time.Time) field.ErrorList {
	path := field.NewPath("spec")
	errs := validateStages(profile.Spec.Kubernetes.Versions, old.Spec.Kubernetes.Versions, now, path.Child("kubernetes", "versions"))
	for i, image := range profile.Spec.MachineImages {
		j := slices.IndexFunc(old.Spec.MachineImages, func(one v1beta1.MachineImage) bool { return one.Name == image.Name })
		if j >= 0 {
			errs = append(errs, validateStages(imageVersions(&image), imageVersions(&old.Spec.MachineImages[j]), now,
				path.Child("machineImages").Index(i).Child("versions"))...)
		}
	}
	return errs
}

func validateStages(versions, old []v1beta1.ExpirableVersion, now time.Time, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range versions {
		j := slices.IndexFunc(old, func(one v1beta1.ExpirableVersion) bool { return one.Version == versions[i].Version })
		if j < 0 || old[j].ClassificationAt(now) == v1beta1.ClassificationUnavailable {
			continue
		}
		errs = append(errs, forbidden(versions[i].ClassificationAt(now) == v1beta1.ClassificationUnavailable, path.Index(i).Child("lifecycle"),
			fmt.Sprintf("version %s is available and cannot become unavailable again", versions[i].Version))...)
	}
	return errs
}

func imageVersions(image *v1beta1.MachineImage) []v1beta1.ExpirableVersion {
	var versions []v1beta1.ExpirableVersion
	for _, version := range image.Versions {
		versions = append(versions, version.ExpirableVersion)
	}
	return versions
}

// validateArchitectures checks that the architectures of an image match its capabilities.
func validateArchitectures(version *v1beta1.MachineImageVersion, defined []v1beta1.CapabilityDefinition, path *field.Path) field.ErrorList {
	if len(defined) == 0 || len(version.Architectures) == 0 || len(version.CapabilityFlavors) == 0 {
		return nil
	}
	given, wanted := slices.Sorted(slices.Values(version.Architectures)), v1beta1.ArchitecturesOf(version.CapabilityFlavors, defined)
	if !slices.Equal(slices.Compact(given), wanted) {
		return field.ErrorList{field.Invalid(path, version.Architectures,
			fmt.Sprintf("must be the architectures in capabilityFlavors: %v", wanted))}
	}
	return nil
}
