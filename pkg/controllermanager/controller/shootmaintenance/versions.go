package shootmaintenance

import (
	"fmt"
	"slices"
	"time"

	"github.com/Masterminds/semver/v3"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/cloudprofile"
)

// update is the version that something gets. The zero value means that nothing is updated.
type update struct {
	to string
	// forced is set if the present version must not be used any more, and no automatic update would have changed it.
	forced bool
}

// candidate is a version of a CloudProfile.
type candidate struct {
	text    string
	version *semver.Version
	class   corev1beta1.VersionClassification
}

// candidatesOf returns versions that can be compared, with their classification at a time.
func candidatesOf[T any](versions []T, of func(*T) *corev1beta1.ExpirableVersion, passes func(*T) bool, now time.Time) []candidate {
	var all []candidate
	for i := range versions {
		one := of(&versions[i])
		parsed, err := semver.NewVersion(one.Version)
		if err == nil && passes(&versions[i]) {
			all = append(all, candidate{one.Version, parsed, one.ClassificationAt(now)})
		}
	}
	return all
}

// best returns the newest supported version that passes, or else the newest deprecated one, or an empty string.
func best(all []candidate, passes func(*semver.Version) bool) string {
	for _, class := range []corev1beta1.VersionClassification{corev1beta1.ClassificationSupported, corev1beta1.ClassificationDeprecated} {
		if found := newest(all, class, passes); found != "" {
			return found
		}
	}
	return ""
}

// bestOrExpired is best, or else the newest expired version: a forced update does not skip versions.
func bestOrExpired(all []candidate, passes func(*semver.Version) bool) string {
	if found := best(all, passes); found != "" {
		return found
	}
	return newest(all, corev1beta1.ClassificationExpired, passes)
}

func newest(all []candidate, class corev1beta1.VersionClassification, passes func(*semver.Version) bool) string {
	var found *candidate
	for i := range all {
		if all[i].class == class && passes(all[i].version) && (found == nil || all[i].version.GreaterThan(found.version)) {
			found = &all[i]
		}
	}
	if found == nil {
		return ""
	}
	return found.text
}

// isExpired reports whether a version is expired, or not offered any more.
func isExpired(version *corev1beta1.ExpirableVersion, now time.Time) bool {
	return version == nil || version.ClassificationAt(now) == corev1beta1.ClassificationExpired
}

// kubernetesUpdate returns the update of a version of Kubernetes: to the newest patch version, and if there is none and the version is
// expired, to the next minor version. The error says that there is none.
func kubernetesUpdate(profile *corev1beta1.CloudProfileSpec, current string, auto bool, now time.Time) (update, error) {
	expired := isExpired(cloudprofile.FindVersion(profile, current), now)
	if !expired && !auto {
		return update{}, nil
	}
	at, err := semver.NewVersion(current)
	if err != nil {
		return update{}, fmt.Errorf("the version %q of Kubernetes cannot be compared: %w", current, err)
	}
	all := candidatesOf(profile.Kubernetes.Versions, func(one *corev1beta1.ExpirableVersion) *corev1beta1.ExpirableVersion { return one },
		func(*corev1beta1.ExpirableVersion) bool { return true }, now)
	if patch := best(all, func(v *semver.Version) bool { return sameMinor(v, at) && v.GreaterThan(at) }); patch != "" {
		return update{patch, expired && !auto}, nil
	}
	if !expired {
		return update{}, nil
	}
	next := bestOrExpired(all, func(v *semver.Version) bool { return v.Major() == at.Major() && v.Minor() == at.Minor()+1 })
	if next == "" {
		return update{}, fmt.Errorf("the version %s of Kubernetes is expired, but the CloudProfile has no version %d.%d to which it can be updated",
			current, at.Major(), at.Minor()+1)
	}
	return update{next, true}, nil
}

// kubeletUpdate is kubernetesUpdate for a pool with a version of its own, which must not be later than that of the control plane.
func kubeletUpdate(profile *corev1beta1.CloudProfileSpec, current, controlPlane string, auto bool, now time.Time) (update, error) {
	found, err := kubernetesUpdate(profile, current, auto, now)
	if err != nil || found.to == "" || !cloudprofile.IsOlder(controlPlane, found.to) {
		return found, err
	}
	if !cloudprofile.IsOlder(current, controlPlane) {
		return update{}, nil
	}
	return update{controlPlane, found.forced}, nil
}

// imageUpdate returns the update of the machine image of a pool that has a version of the kubelet.
func imageUpdate(profile *corev1beta1.CloudProfileSpec, pool *corev1beta1.Worker, kubelet string, auto bool, now time.Time) (update, error) {
	image := pool.Machine.Image
	if image == nil || image.Version == nil {
		return update{}, nil
	}
	offered := cloudprofile.FindImage(profile, image.Name)
	if offered == nil {
		return update{}, fmt.Errorf("the CloudProfile does not have the machine image %q any more: choose another one", image.Name)
	}
	var known *corev1beta1.ExpirableVersion
	if version := cloudprofile.FindImageVersion(offered, *image.Version); version != nil {
		known = &version.ExpirableVersion
	}
	expired := isExpired(known, now)
	if !expired && !auto {
		return update{}, nil
	}
	at, err := semver.NewVersion(*image.Version)
	if err != nil {
		return update{}, fmt.Errorf("the version %q of the machine image %s cannot be compared: %w", *image.Version, image.Name, err)
	}
	all := candidatesOf(offered.Versions, func(one *corev1beta1.MachineImageVersion) *corev1beta1.ExpirableVersion { return &one.ExpirableVersion },
		func(one *corev1beta1.MachineImageVersion) bool { return fits(profile, one, pool, kubelet) }, now)
	strategy := ptr.Deref(offered.UpdateStrategy, corev1beta1.UpdateStrategyMajor)
	if found := inStrategy(all, at, strategy); found != "" {
		return update{found, expired && !auto}, nil
	}
	if !expired {
		return update{}, nil
	}
	found := beyondStrategy(all, at, strategy)
	if found == "" {
		return update{}, fmt.Errorf("the version %s of the machine image %s is expired, but the CloudProfile has no later version that the pool can use",
			*image.Version, image.Name)
	}
	return update{found, true}, nil
}

// inStrategy returns the newest version to which the update strategy of an image allows to go. The newest patch version comes first.
func inStrategy(all []candidate, at *semver.Version, strategy corev1beta1.MachineImageUpdateStrategy) string {
	found := best(all, func(v *semver.Version) bool { return sameMinor(v, at) && v.GreaterThan(at) })
	switch {
	case found != "" || strategy == corev1beta1.UpdateStrategyPatch:
		return found
	case strategy == corev1beta1.UpdateStrategyMinor:
		return best(all, func(v *semver.Version) bool { return v.Major() == at.Major() && v.GreaterThan(at) })
	}
	return best(all, func(v *semver.Version) bool { return v.GreaterThan(at) })
}

// beyondStrategy returns the version of a forced update, if the strategy allows no other: in the next minor version, or in the next
// major version, that the image has.
func beyondStrategy(all []candidate, at *semver.Version, strategy corev1beta1.MachineImageUpdateStrategy) string {
	part, later := (*semver.Version).Minor, func(v *semver.Version) bool { return v.Major() == at.Major() && v.Minor() > at.Minor() }
	switch strategy {
	case corev1beta1.UpdateStrategyMinor:
		part, later = (*semver.Version).Major, func(v *semver.Version) bool { return v.Major() > at.Major() }
	case corev1beta1.UpdateStrategyMajor:
		return ""
	}
	nearest := uint64(0)
	for _, one := range all {
		offered := one.class != corev1beta1.ClassificationPreview && one.class != corev1beta1.ClassificationUnavailable
		if offered && later(one.version) && (nearest == 0 || part(one.version) < nearest) {
			nearest = part(one.version)
		}
	}
	return bestOrExpired(all, func(v *semver.Version) bool { return later(v) && part(v) == nearest })
}

// fits reports whether a pool can use a version of its image.
func fits(profile *corev1beta1.CloudProfileSpec, version *corev1beta1.MachineImageVersion, pool *corev1beta1.Worker, kubelet string) bool {
	machine := cloudprofile.FindMachineType(profile, pool.Machine.Type)
	if machine == nil {
		return false
	}
	architecture := ptr.Deref(pool.Machine.Architecture, corev1beta1.ArchitectureAMD64)
	return cloudprofile.Runs(profile, version, machine, architecture) && cloudprofile.AllowsKubelet(version, kubelet) &&
		cloudprofile.MissingRuntime(version, pool.CRI) == "" && canUpdateInPlace(version, pool)
}

// canUpdateInPlace reports whether nodes of a pool that is updated in place can get a version of their image.
func canUpdateInPlace(version *corev1beta1.MachineImageVersion, pool *corev1beta1.Worker) bool {
	if !corev1beta1.IsUpdateStrategyInPlace(pool.UpdateStrategy) {
		return true
	}
	if !cloudprofile.UpdatesInPlace(version) {
		return false
	}
	least := version.InPlaceUpdates.MinVersionForUpdate
	return least == nil || !cloudprofile.IsOlder(*pool.Machine.Image.Version, *least)
}

func sameMinor(a, b *semver.Version) bool { return a.Major() == b.Major() && a.Minor() == b.Minor() }

// kubeletOf returns the version of the kubelets of a pool: its own, or that of the control plane.
func kubeletOf(pool *corev1beta1.Worker, controlPlane string) string {
	if pool.Kubernetes != nil && pool.Kubernetes.Version != nil {
		return *pool.Kubernetes.Version
	}
	return controlPlane
}

// updates returns whether versions of Kubernetes and of machine images are updated automatically. The API server sets both.
func updates(shoot *corev1beta1.Shoot) (kubernetes, images bool) {
	settings := shoot.Spec.Maintenance
	if settings == nil || settings.AutoUpdate == nil {
		return false, false
	}
	return settings.AutoUpdate.KubernetesVersion, ptr.Deref(settings.AutoUpdate.MachineImageVersion, false)
}

// isForced reports whether a version of a Shoot must be updated because it is expired, and would not have been updated otherwise.
func isForced(shoot *corev1beta1.Shoot, profile *corev1beta1.CloudProfileSpec, now time.Time) bool {
	auto, images := updates(shoot)
	version := shoot.Spec.Kubernetes.Version
	if found, err := kubernetesUpdate(profile, version, auto, now); err == nil && found.forced {
		return true
	}
	return slices.ContainsFunc(shoot.Spec.Provider.Workers, func(pool corev1beta1.Worker) bool {
		kubelet := kubeletOf(&pool, version)
		found, err := kubeletUpdate(profile, kubelet, version, auto, now)
		image, imageErr := imageUpdate(profile, &pool, kubelet, images, now)
		return err == nil && found.forced || imageErr == nil && image.forced
	})
}
