package validation

import (
	"slices"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

func workerOf(shoot *v1beta1.Shoot, name string) *v1beta1.Worker {
	i := slices.IndexFunc(shoot.Spec.Provider.Workers, func(worker v1beta1.Worker) bool { return worker.Name == name })
	if i < 0 {
		return nil
	}
	return &shoot.Spec.Provider.Workers[i]
}

// validateSelfHostedUpdate checks that the control plane stays where it is: on a Seed, or on one pool.
func validateSelfHostedUpdate(workers, old []v1beta1.Worker, path *field.Path) field.ErrorList {
	runsControlPlane := func(worker v1beta1.Worker) bool { return worker.ControlPlane != nil }
	now, before := slices.IndexFunc(workers, runsControlPlane), slices.IndexFunc(old, runsControlPlane)
	if (now < 0) != (before < 0) {
		return field.ErrorList{field.Forbidden(path, "a Shoot cannot become self-hosted, nor the other way round")}
	}
	if now < 0 {
		return nil
	}
	errs := immutable(workers[now].Name, old[before].Name, path.Index(now).Child("name"))
	return append(errs, validateBackupUpdate(workers[now].ControlPlane.Backup, old[before].ControlPlane.Backup,
		path.Index(now).Child("controlPlane", "backup"))...)
}

func validateWorkersUpdate(spec, old *v1beta1.ShootSpec, path *field.Path) field.ErrorList {
	if (len(spec.Provider.Workers) == 0) != (len(old.Provider.Workers) == 0) {
		return field.ErrorList{field.Forbidden(path, "a Shoot with worker pools cannot become one without any, nor the other way round")}
	}
	errs := validateSelfHostedUpdate(spec.Provider.Workers, old.Provider.Workers, path)
	for i := range spec.Provider.Workers {
		worker, at := &spec.Provider.Workers[i], path.Index(i)
		j := slices.IndexFunc(old.Provider.Workers, func(one v1beta1.Worker) bool { return one.Name == worker.Name })
		if j < 0 {
			continue
		}
		before := &old.Provider.Workers[j]
		inPlace, minors := v1beta1.IsUpdateStrategyInPlace(worker.UpdateStrategy), uint64(maxKubeletSkew)
		if inPlace {
			minors = 1
		}
		errs = append(errs, validateVersionUpdate(kubeletVersion(worker, spec), kubeletVersion(before, old), minors,
			at.Child("kubernetes", "version"))...)
		errs = append(errs, forbidden(inPlace != v1beta1.IsUpdateStrategyInPlace(before.UpdateStrategy), at.Child("updateStrategy"),
			"a pool cannot change between rolling and in-place updates")...)
		if inPlace && v1beta1.IsUpdateStrategyInPlace(before.UpdateStrategy) {
			errs = append(errs, validateInPlaceUpdate(worker, before, at)...)
		}
	}
	return errs
}

// validateInPlaceUpdate checks that a pool does not change in a way that needs new machines.
func validateInPlaceUpdate(worker, before *v1beta1.Worker, path *field.Path) field.ErrorList {
	errs := immutable(worker.Machine.Type, before.Machine.Type, path.Child("machine", "type"))
	errs = append(errs, immutable(worker.Volume, before.Volume, path.Child("volume"))...)
	errs = append(errs, immutable(worker.DataVolumes, before.DataVolumes, path.Child("dataVolumes"))...)
	if worker.CRI != nil && before.CRI != nil {
		errs = append(errs, immutable(worker.CRI.Name, before.CRI.Name, path.Child("cri", "name"))...)
	}
	image, old := worker.Machine.Image, before.Machine.Image
	if image == nil || old == nil {
		return errs
	}
	errs = append(errs, immutable(image.Name, old.Name, path.Child("machine", "image", "name"))...)
	if image.Version == nil || old.Version == nil {
		return errs
	}
	newer, err := semver.NewVersion(*image.Version)
	older, oldErr := semver.NewVersion(*old.Version)
	return append(errs, forbidden(err == nil && oldErr == nil && newer.LessThan(older), path.Child("machine", "image", "version"),
		"the image of a pool that is updated in place cannot be downgraded from "+*old.Version+" to "+*image.Version)...)
}

// kubeletConfig returns the configuration of the kubelets of a pool: its own, or that of the cluster.
func kubeletConfig(worker *v1beta1.Worker, spec *v1beta1.ShootSpec) *v1beta1.KubeletConfig {
	if worker.Kubernetes != nil && worker.Kubernetes.Kubelet != nil {
		return worker.Kubernetes.Kubelet
	}
	return spec.Kubernetes.Kubelet
}

// kubeletVersion returns the version of a pool: its own, or that of the cluster.
func kubeletVersion(worker *v1beta1.Worker, spec *v1beta1.ShootSpec) string {
	if worker.Kubernetes != nil && worker.Kubernetes.Version != nil {
		return *worker.Kubernetes.Version
	}
	return spec.Kubernetes.Version
}
