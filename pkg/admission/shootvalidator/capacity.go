package shootvalidator

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/cloudprofile"
)

// volumes checks the types and sizes of the disks of a pool.
func (p *pool) volumes() field.ErrorList {
	var errs field.ErrorList
	if volume := p.worker.Volume; volume != nil {
		changed := changesPart(p, func(worker *gardencorev1beta1.Worker) *gardencorev1beta1.Volume { return worker.Volume })
		path := p.path.Child("volume")
		errs = append(errs, p.volume(volume.Type, volume.VolumeSize, changed, path)...)
		if changed || changesPart(p, machineTypeOf) {
			errs = append(errs, p.storage(volume, path)...)
		}
	}
	for i := range p.worker.DataVolumes {
		volume := &p.worker.DataVolumes[i]
		errs = append(errs, p.volume(volume.Type, volume.VolumeSize, p.isNewVolume(volume), p.path.Child("dataVolumes").Index(i))...)
	}
	return errs
}

func (p *pool) isNewVolume(volume *gardencorev1beta1.DataVolume) bool {
	if p.before == nil {
		return true
	}
	for i := range p.before.DataVolumes {
		if p.before.DataVolumes[i].Name == volume.Name {
			return !equality.Semantic.DeepEqual(p.before.DataVolumes[i], *volume)
		}
	}
	return true
}

// volume checks that the profile has the type of a disk, that it is available in the zones of the pool, and that the disk is large
// enough.
func (p *pool) volume(name *string, size string, changed bool, path *field.Path) field.ErrorList {
	if name == nil {
		return nil
	}
	zones, at := p.added, path.Child("type")
	var errs field.ErrorList
	if changed {
		zones = p.worker.Zones
		offered := cloudprofile.FindVolumeType(p.profile.Spec, *name)
		switch {
		case offered == nil:
			return field.ErrorList{field.Invalid(at, *name, "the CloudProfile does not have this volume type")}
		case offered.Usable != nil && !*offered.Usable:
			return field.ErrorList{field.Invalid(at, *name, "the CloudProfile does not allow this volume type for new volumes")}
		}
		errs = append(errs, atLeast(size, offered.MinSize, "the volume type "+*name, path.Child("size"))...)
	}
	return append(errs, p.available(zones, at, *name, func(zone *gardencorev1beta1.AvailabilityZone) []string { return zone.UnavailableVolumeTypes })...)
}

// storage checks that the root disk is as large as the machine type demands for its type.
func (p *pool) storage(volume *gardencorev1beta1.Volume, path *field.Path) field.ErrorList {
	if p.machine == nil || p.machine.Storage == nil || volume.Type != nil && *volume.Type != p.machine.Storage.Type {
		return nil
	}
	return atLeast(volume.VolumeSize, p.machine.Storage.MinSize, "the machine type "+p.machine.Name, path.Child("size"))
}

// atLeast checks that a size is not below a minimum. Static validation refuses sizes that are not quantities.
func atLeast(size string, least *resource.Quantity, owner string, path *field.Path) field.ErrorList {
	quantity, err := resource.ParseQuantity(size)
	if least == nil || err != nil || quantity.Cmp(*least) >= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, size, fmt.Sprintf("%s needs at least %s", owner, least))}
}

// reserved checks that the kubelet does not reserve the whole machine for itself.
func (p *pool) reserved() field.ErrorList {
	reserved := reservedOf(p.worker, &p.shoot.Spec)
	if reserved == nil || p.machine == nil {
		return nil
	}
	if p.before != nil && !changesPart(p, machineTypeOf) && equality.Semantic.DeepEqual(reserved, reservedOf(p.before, &p.old.Spec)) {
		return nil
	}
	var errs field.ErrorList
	path := p.path.Child("kubernetes", "kubelet", "kubeReserved")
	for name, one := range map[string]struct{ reserved, capacity *resource.Quantity }{
		"cpu": {reserved.CPU, &p.machine.CPU}, "memory": {reserved.Memory, &p.machine.Memory},
	} {
		if one.reserved != nil && one.reserved.Cmp(*one.capacity) >= 0 {
			errs = append(errs, field.Invalid(path.Child(name), one.reserved.String(), fmt.Sprintf("must be less than the %s of the machine type %q, which is %s",
				name, p.machine.Name, one.capacity)))
		}
	}
	return errs
}

// reservedOf returns what the kubelets of a pool reserve, by their own configuration or that of the cluster.
func reservedOf(worker *gardencorev1beta1.Worker, spec *gardencorev1beta1.ShootSpec) *gardencorev1beta1.KubeletConfigReserved {
	if worker.Kubernetes != nil && worker.Kubernetes.Kubelet != nil {
		return worker.Kubernetes.Kubelet.KubeReserved
	}
	if spec.Kubernetes.Kubelet != nil {
		return spec.Kubernetes.Kubelet.KubeReserved
	}
	return nil
}

// kubelet checks that the profile offers the version of a pool, if that is not the one of the cluster.
func (p *pool) kubelet() field.ErrorList {
	kubernetes := p.worker.Kubernetes
	if kubernetes == nil || kubernetes.Version == nil || *kubernetes.Version == p.shoot.Spec.Kubernetes.Version || !p.kubeletChanges() {
		return nil
	}
	return p.offersVersion(*kubernetes.Version, p.before == nil, p.path.Child("kubernetes", "version"))
}
