package shootmutator

import (
	"net/netip"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// rotationPeriod is the time between two rotations of the key with which etcd is encrypted, for new Shoots.
const rotationPeriod = 28 * 24 * time.Hour

// setRotationPeriod sets the time between two rotations of the key with which etcd is encrypted.
func setRotationPeriod(spec *gardencorev1beta1.ShootSpec) {
	if spec.Maintenance == nil {
		spec.Maintenance = &gardencorev1beta1.Maintenance{}
	}
	if spec.Maintenance.AutoRotation == nil {
		spec.Maintenance.AutoRotation = &gardencorev1beta1.MaintenanceAutoRotation{}
	}
	rotation := spec.Maintenance.AutoRotation
	if rotation.Credentials == nil {
		rotation.Credentials = &gardencorev1beta1.MaintenanceCredentialsAutoRotation{}
	}
	if rotation.Credentials.ETCDEncryptionKey == nil {
		rotation.Credentials.ETCDEncryptionKey = &gardencorev1beta1.MaintenanceRotationConfig{RotationPeriod: &metav1.Duration{Duration: rotationPeriod}}
	}
}

// hasNetworks reports whether a Shoot has ranges for Pods and Services. A Shoot without nodes has no Pods.
func hasNetworks(spec *gardencorev1beta1.ShootSpec) bool {
	return spec.Networking != nil && (spec.Networking.Pods != nil || len(spec.Provider.Workers) == 0) && spec.Networking.Services != nil
}

// setNetworks sets the ranges that a Shoot lacks from the defaults of its Seed, which can be nil, if they are of a family of the Shoot.
func setNetworks(spec *gardencorev1beta1.ShootSpec, defaults *gardencorev1beta1.ShootNetworks) {
	if defaults == nil {
		return
	}
	if spec.Networking == nil {
		spec.Networking = &gardencorev1beta1.Networking{}
	}
	networking := spec.Networking
	if networking.Pods == nil && len(spec.Provider.Workers) > 0 && fits(defaults.Pods, networking.IPFamilies) {
		networking.Pods = copyOf(*defaults.Pods)
	}
	if networking.Services == nil && fits(defaults.Services, networking.IPFamilies) {
		networking.Services = copyOf(*defaults.Services)
	}
}

func fits(value *string, families []gardencorev1beta1.IPFamily) bool {
	if value == nil {
		return false
	}
	prefix, err := netip.ParsePrefix(*value)
	if err != nil {
		return false
	}
	family := gardencorev1beta1.IPFamilyIPv6
	if prefix.Addr().Is4() {
		family = gardencorev1beta1.IPFamilyIPv4
	}
	return len(families) == 0 && family == gardencorev1beta1.IPFamilyIPv4 || slices.Contains(families, family)
}

func copyOf(value string) *string { return &value }
