package validation

import (
	"slices"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// ValidateShootUpdate checks a Shoot that replaces another.
func ValidateShootUpdate(shoot, old *v1beta1.Shoot) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&shoot.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	path := field.NewPath("spec")
	if shoot.DeletionTimestamp != nil {
		errs = append(errs, immutable(shoot.Spec, old.Spec, path)...)
	}
	errs = append(errs, validateShootSpecUpdate(&shoot.Spec, &old.Spec, path)...)
	return append(errs, ValidateShoot(shoot)...)
}

func validateShootSpecUpdate(spec, old *v1beta1.ShootSpec, path *field.Path) field.ErrorList {
	errs := immutable(spec.Region, old.Region, path.Child("region"))
	errs = append(errs, immutable(spec.ExposureClassName, old.ExposureClassName, path.Child("exposureClassName"))...)
	errs = append(errs, immutable(spec.Provider.Type, old.Provider.Type, path.Child("provider", "type"))...)
	if old.SchedulerName != nil || ptr.Deref(spec.SchedulerName, "") != constants.DefaultSchedulerName {
		errs = append(errs, immutable(spec.SchedulerName, old.SchedulerName, path.Child("schedulerName"))...)
	}
	if ptr.Deref(old.CredentialsBindingName, "") != "" && ptr.Deref(spec.CredentialsBindingName, "") == "" {
		errs = append(errs, field.Forbidden(path.Child("credentialsBindingName"), "can be changed, but not removed"))
	}
	replaced := spec.SecretBindingName == nil && ptr.Deref(spec.CredentialsBindingName, "") != ""
	if old.SecretBindingName != nil && !replaced {
		errs = append(errs, immutable(spec.SecretBindingName, old.SecretBindingName, path.Child("secretBindingName"))...)
	}
	errs = append(errs, validateVersionUpdate(spec.Kubernetes.Version, old.Kubernetes.Version, 1, path.Child("kubernetes", "version"))...)
	if old.DNS != nil {
		if spec.DNS == nil {
			errs = append(errs, field.Forbidden(path.Child("dns"), "cannot be removed"))
		} else {
			errs = append(errs, immutableOnceSet(spec.DNS.Domain, old.DNS.Domain, path.Child("dns", "domain"))...)
		}
	}
	errs = append(errs, validateNetworkingUpdate(spec.Networking, old.Networking, path.Child("networking"))...)
	errs = append(errs, validateManagerUpdate(spec, old, path.Child("kubernetes", "kubeControllerManager"))...)
	if old.ControlPlane != nil && old.ControlPlane.HighAvailability != nil && old.SeedName != nil {
		at := path.Child("controlPlane", "highAvailability", "failureTolerance", "type")
		var now v1beta1.FailureToleranceType
		if spec.ControlPlane != nil && spec.ControlPlane.HighAvailability != nil {
			now = spec.ControlPlane.HighAvailability.FailureTolerance.Type
		}
		errs = append(errs, immutable(now, old.ControlPlane.HighAvailability.FailureTolerance.Type, at)...)
	}
	return append(errs, validateWorkersUpdate(spec, old, path.Child("provider", "workers"))...)
}

// validateVersionUpdate checks that a version of Kubernetes is not lower than before, nor higher by more minor versions
// than it may be.
func validateVersionUpdate(now, before string, minors uint, path *field.Path) field.ErrorList {
	newer, err := version.ParseSemantic(now)
	if err != nil {
		return nil // is reported for the object as such
	}
	older, err := version.ParseSemantic(before)
	if err != nil {
		return nil
	}
	switch {
	case newer.LessThan(older):
		return field.ErrorList{field.Forbidden(path, "the version cannot be lowered from "+before+" to "+now)}
	case newer.Major() != older.Major() || newer.Minor() > older.Minor()+minors:
		return field.ErrorList{field.Forbidden(path, "the version can be raised by one minor version at a time, not from "+before+" to "+now)}
	}
	return nil
}

func validateNetworkingUpdate(networking, old *v1beta1.Networking, path *field.Path) field.ErrorList {
	if old == nil {
		return nil
	}
	if networking == nil {
		return field.ErrorList{field.Forbidden(path, "cannot be removed")}
	}
	errs := immutable(networking.Type, old.Type, path.Child("type"))
	errs = append(errs, immutableOnceSet(networking.Pods, old.Pods, path.Child("pods"))...)
	errs = append(errs, immutableOnceSet(networking.Services, old.Services, path.Child("services"))...)
	single, dual := []v1beta1.IPFamily{v1beta1.IPFamilyIPv4}, []v1beta1.IPFamily{v1beta1.IPFamilyIPv4, v1beta1.IPFamilyIPv6}
	now, before := networking.IPFamilies, old.IPFamilies
	migrates := slices.Equal(before, single) && slices.Equal(now, dual) || slices.Equal(before, dual) && slices.Equal(now, single)
	if !slices.Equal(now, before) && !migrates && len(before) > 0 {
		errs = append(errs, field.Invalid(path.Child("ipFamilies"), now, "can change from IPv4 to IPv4 and IPv6 and back only"))
	}
	return errs
}

func validateManagerUpdate(spec, old *v1beta1.ShootSpec, path *field.Path) field.ErrorList {
	manager, before := spec.Kubernetes.KubeControllerManager, old.Kubernetes.KubeControllerManager
	if before == nil {
		return nil
	}
	if manager == nil {
		manager = &v1beta1.KubeControllerManagerConfig{}
	}
	errs := immutableOnceSet(manager.NodeCIDRMaskSize, before.NodeCIDRMaskSize, path.Child("nodeCIDRMaskSize"))
	return append(errs, immutableOnceSet(manager.NodeCIDRMaskSizeIPv6, before.NodeCIDRMaskSizeIPv6, path.Child("nodeCIDRMaskSizeIPv6"))...)
}

func validateWorkersUpdate(spec, old *v1beta1.ShootSpec, path *field.Path) field.ErrorList {
	if (len(spec.Provider.Workers) == 0) != (len(old.Provider.Workers) == 0) {
		return field.ErrorList{field.Forbidden(path, "a Shoot with worker pools cannot become one without any, nor the other way round")}
	}
	var errs field.ErrorList
	for i := range spec.Provider.Workers {
		worker, at := &spec.Provider.Workers[i], path.Index(i)
		j := slices.IndexFunc(old.Provider.Workers, func(one v1beta1.Worker) bool { return one.Name == worker.Name })
		if j < 0 {
			continue
		}
		before := &old.Provider.Workers[j]
		errs = append(errs, validateVersionUpdate(kubeletVersion(worker, spec), kubeletVersion(before, old), 3, at.Child("kubernetes", "version"))...)
		inPlace := v1beta1.IsUpdateStrategyInPlace(worker.UpdateStrategy)
		errs = append(errs, forbidden(inPlace != v1beta1.IsUpdateStrategyInPlace(before.UpdateStrategy), at.Child("updateStrategy"),
			"a pool cannot change between rolling and in-place updates")...)
		errs = append(errs, forbidden((worker.ControlPlane == nil) != (before.ControlPlane == nil), at.Child("controlPlane"),
			"a Shoot cannot become self-hosted, nor the other way round")...)
		if worker.ControlPlane != nil && before.ControlPlane != nil {
			errs = append(errs, validateBackupUpdate(worker.ControlPlane.Backup, before.ControlPlane.Backup, at.Child("controlPlane", "backup"))...)
		}
		if !inPlace || !v1beta1.IsUpdateStrategyInPlace(before.UpdateStrategy) {
			continue
		}
		errs = append(errs, immutable(worker.Machine.Type, before.Machine.Type, at.Child("machine", "type"))...)
		errs = append(errs, immutable(worker.Volume, before.Volume, at.Child("volume"))...)
		errs = append(errs, immutable(worker.DataVolumes, before.DataVolumes, at.Child("dataVolumes"))...)
		if worker.Machine.Image != nil && before.Machine.Image != nil {
			errs = append(errs, immutable(worker.Machine.Image.Name, before.Machine.Image.Name, at.Child("machine", "image", "name"))...)
		}
		if worker.CRI != nil && before.CRI != nil {
			errs = append(errs, immutable(worker.CRI.Name, before.CRI.Name, at.Child("cri", "name"))...)
		}
	}
	return errs
}

// kubeletVersion returns the version of a pool: its own, or that of the cluster.
func kubeletVersion(worker *v1beta1.Worker, spec *v1beta1.ShootSpec) string {
	if worker.Kubernetes != nil && worker.Kubernetes.Version != nil {
		return *worker.Kubernetes.Version
	}
	return spec.Kubernetes.Version
}
