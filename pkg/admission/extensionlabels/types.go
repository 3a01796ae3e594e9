package extensionlabels

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// ofSeed returns the labels of a Seed. Automatic are the registrations with extensions that Seeds have by default.
func ofSeed(spec *gardencorev1beta1.SeedSpec, automatic []*gardencorev1beta1.ControllerRegistration) wantedLabels {
	wanted := wantedLabels{}
	wanted.add(constants.LabelPrefixProviderExtension, spec.Provider.Type)
	if spec.Backup != nil {
		wanted.add(constants.LabelPrefixProviderExtension, spec.Backup.Provider)
	}
	if spec.DNS.Provider != nil {
		wanted.add(constants.LabelPrefixDNSRecordExtension, spec.DNS.Provider.Type)
	}
	if spec.DNS.Internal != nil {
		wanted.add(constants.LabelPrefixDNSRecordExtension, spec.DNS.Internal.Type)
	}
	for _, domain := range spec.DNS.Defaults {
		wanted.add(constants.LabelPrefixDNSRecordExtension, domain.Type)
	}
	for typed := range enabled(spec.Extensions, automatic, gardencorev1beta1.ClusterTypeSeed, false) {
		wanted.add(constants.LabelPrefixExtension, typed)
	}
	return wanted
}

// ofShoot returns the labels of a Shoot. Automatic are the registrations with extensions that Shoots have by default.
func ofShoot(spec *gardencorev1beta1.ShootSpec, automatic []*gardencorev1beta1.ControllerRegistration) wantedLabels {
	wanted := wantedLabels{}
	wanted.add(constants.LabelPrefixProviderExtension, spec.Provider.Type)
	if spec.Networking != nil {
		wanted.add(constants.LabelPrefixNetworkingExtension, ptr.Deref(spec.Networking.Type, ""))
	}
	if spec.DNS != nil {
		for _, provider := range spec.DNS.Providers {
			wanted.add(constants.LabelPrefixDNSRecordExtension, ptr.Deref(provider.Type, ""))
		}
	}
	for typed := range enabled(spec.Extensions, automatic, gardencorev1beta1.ClusterTypeShoot, len(spec.Provider.Workers) == 0) {
		wanted.add(constants.LabelPrefixExtension, typed)
	}
	for i := range spec.Provider.Workers {
		pool := &spec.Provider.Workers[i]
		if pool.CRI != nil {
			for _, runtime := range pool.CRI.ContainerRuntimes {
				wanted.add(constants.LabelPrefixContainerRuntimeExtension, runtime.Type)
			}
		}
		if pool.Machine.Image != nil {
			wanted.add(constants.LabelPrefixOperatingSystemConfigExtension, pool.Machine.Image.Name)
		}
		if control := pool.ControlPlane; control != nil && control.Exposure != nil && control.Exposure.Extension != nil {
			wanted.add(constants.LabelPrefixSelfHostedShootExposureExtension, ptr.Deref(control.Exposure.Extension.Type, ""))
		}
	}
	return wanted
}

// enabled returns the types of extensions that a cluster has: its own ones and the automatic ones, without those that are
// disabled.
func enabled(own []gardencorev1beta1.Extension, automatic []*gardencorev1beta1.ControllerRegistration, cluster gardencorev1beta1.ClusterType, workerless bool) sets.Set[string] {
	types := sets.New[string]()
	for _, registration := range automatic {
		for _, resource := range registration.Spec.Resources {
			supported := !workerless || ptr.Deref(resource.WorkerlessSupported, false)
			if resource.Kind == gardencorev1beta1.KindExtension && slices.Contains(resource.AutoEnable, cluster) && supported {
				types.Insert(resource.Type)
			}
		}
	}
	for _, extension := range own {
		if ptr.Deref(extension.Disabled, false) {
			types.Delete(extension.Type)
		} else {
			types.Insert(extension.Type)
		}
	}
	return types
}
