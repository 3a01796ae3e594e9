package cloudprofile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// partsOfVersion is the number of parts of a complete version.
const partsOfVersion = 3

// IsComplete reports whether a version has a major, a minor and a patch version.
func IsComplete(version string) bool { return len(strings.Split(version, ".")) >= partsOfVersion }

// Matches reports whether a complete version begins with the parts of another one, such as 1.34.7 with 1.34, 1 or nothing.
func Matches(version, parts string) bool {
	return parts == "" || version == parts || strings.HasPrefix(version, parts+".")
}

// CheckParts returns an error if a version is not made of numbers.
func CheckParts(version string) error {
	if version == "" {
		return nil
	}
	for part := range strings.SplitSeq(version, ".") {
		if _, err := strconv.ParseUint(part, 10, 32); err != nil {
			return fmt.Errorf("%q is not a version or the begin of one", version)
		}
	}
	return nil
}

// Newest returns the newest of the versions that begin with the parts of another one and that pass a filter, or nil.
func Newest[T any](versions []T, parts string, of func(*T) *corev1beta1.ExpirableVersion, passes func(*T) bool) *T {
	var (
		newest *T
		best   *semver.Version
	)
	for i := range versions {
		one := of(&versions[i])
		if !Matches(one.Version, parts) || !passes(&versions[i]) {
			continue
		}
		parsed, err := semver.NewVersion(one.Version)
		if err == nil && (best == nil || parsed.GreaterThan(best)) {
			newest, best = &versions[i], parsed
		}
	}
	return newest
}

// NewestKubernetes returns the newest supported version of Kubernetes that begins with the parts of a version. It fails if there is
// none.
func NewestKubernetes(spec *corev1beta1.CloudProfileSpec, parts string, now time.Time) (string, error) {
	if err := CheckParts(parts); err != nil {
		return "", err
	}
	found := Newest(spec.Kubernetes.Versions, parts, func(one *corev1beta1.ExpirableVersion) *corev1beta1.ExpirableVersion { return one },
		func(one *corev1beta1.ExpirableVersion) bool {
			return one.ClassificationAt(now) == corev1beta1.ClassificationSupported
		})
	if found == nil {
		return "", fmt.Errorf("the CloudProfile has no supported version of Kubernetes that begins with %q", parts)
	}
	return found.Version, nil
}

// ImageNeeds is what a worker pool needs of a machine image.
type ImageNeeds struct {
	// Machine is the machine type. It is nil if the profile does not have it.
	Machine *corev1beta1.MachineType
	// Architecture is the architecture of the CPU.
	Architecture string
	// Kubelet is the version of the kubelet.
	Kubelet string
	// InPlace is set if nodes are updated in place.
	InPlace bool
	// CRI is the container runtime interface. It is nil for the default.
	CRI *corev1beta1.CRI
}

// NewestImage returns the newest version of an image that begins with the parts of a version, can be used now and has what a pool
// needs, or nil. The image can be nil.
func NewestImage(
	spec *corev1beta1.CloudProfileSpec, image *corev1beta1.MachineImage, parts string, needs *ImageNeeds, now time.Time,
) *corev1beta1.MachineImageVersion {
	if image == nil || needs.Machine == nil {
		return nil
	}
	usable := []corev1beta1.VersionClassification{corev1beta1.ClassificationSupported, corev1beta1.ClassificationDeprecated}
	return Newest(image.Versions, parts, func(one *corev1beta1.MachineImageVersion) *corev1beta1.ExpirableVersion { return &one.ExpirableVersion },
		func(one *corev1beta1.MachineImageVersion) bool {
			return slices.Contains(usable, one.ClassificationAt(now)) && Runs(spec, one, needs.Machine, needs.Architecture) &&
				AllowsKubelet(one, needs.Kubelet) && (!needs.InPlace || UpdatesInPlace(one)) && MissingRuntime(one, needs.CRI) == ""
		})
}

// UpdatesInPlace reports whether nodes with a version of an image can be updated in place.
func UpdatesInPlace(version *corev1beta1.MachineImageVersion) bool {
	return version.InPlaceUpdates != nil && version.InPlaceUpdates.Supported
}

// AllowsKubelet reports whether a version of an image supports a version of the kubelet.
func AllowsKubelet(version *corev1beta1.MachineImageVersion, kubelet string) bool {
	if version.KubeletVersionConstraint == nil {
		return true
	}
	constraint, err := semver.NewConstraint(*version.KubeletVersionConstraint)
	parsed, parseErr := semver.NewVersion(kubelet)
	return err == nil && parseErr == nil && constraint.Check(parsed)
}

// MissingRuntime returns the container runtime interface or the container runtime of a pool that a version of an image lacks, or
// nothing. An image that lists none has containerd.
func MissingRuntime(version *corev1beta1.MachineImageVersion, cri *corev1beta1.CRI) string {
	if cri == nil {
		return ""
	}
	offered := version.CRI
	if len(offered) == 0 {
		offered = []corev1beta1.CRI{{Name: corev1beta1.CRINameContainerD}}
	}
	found := find(offered, func(one *corev1beta1.CRI) bool { return one.Name == cri.Name })
	if found == nil {
		return string(cri.Name)
	}
	for _, wanted := range cri.ContainerRuntimes {
		if find(found.ContainerRuntimes, func(one *corev1beta1.ContainerRuntime) bool { return one.Type == wanted.Type }) == nil {
			return wanted.Type
		}
	}
	return ""
}

// IsOlder reports whether a version is older than another one. Versions that cannot be compared are not.
func IsOlder(version, other string) bool {
	left, err := semver.NewVersion(version)
	right, otherErr := semver.NewVersion(other)
	return err == nil && otherErr == nil && left.LessThan(right)
}
