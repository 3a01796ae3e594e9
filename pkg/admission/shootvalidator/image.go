package shootvalidator

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/cloudprofile"
)

// imageOf returns the name and the version of the image of a pool.
func imageOf(worker *gardencorev1beta1.Worker) [2]string {
	image := worker.Machine.Image
	switch {
	case image == nil:
		return [2]string{}
	case image.Version == nil:
		return [2]string{image.Name, ""}
	}
	return [2]string{image.Name, *image.Version}
}

// offeredImage returns the version of the image of a pool in the profile, or nil.
func (p *pool) offeredImage() *gardencorev1beta1.MachineImageVersion {
	image := imageOf(p.worker)
	return cloudprofile.FindImageVersion(cloudprofile.FindImage(p.profile.Spec, image[0]), image[1])
}

// image checks that the profile has the image of the pool, that it can be used now, and that it runs on the machines of the pool with
// their kubelet.
func (p *pool) image() field.ErrorList {
	if p.worker.Machine.Image == nil {
		return nil // static validation demands an image where one is needed
	}
	path, image := p.path.Child("machine", "image"), imageOf(p.worker)
	value, changed, offered := image[0]+" "+image[1], changesPart(p, imageOf), p.offeredImage()
	if offered == nil {
		if !changed {
			return nil
		}
		return field.ErrorList{field.Invalid(path, value, "the CloudProfile does not have this version of the machine image")}
	}
	var errs field.ErrorList
	if changed {
		errs = append(errs, p.usable(&offered.ExpirableVersion, !p.mayExpire(), path.Child("version"))...)
		errs = append(errs, p.updatesInPlace(offered, path.Child("version"))...)
	}
	machineChanged := changesPart(p, machineTypeOf) || changesPart(p, architectureOf)
	if architecture := architectureOf(p.worker); p.machine != nil && (changed || machineChanged) && !cloudprofile.Runs(p.profile.Spec, offered, p.machine, architecture) {
		errs = append(errs, field.Invalid(path, value, fmt.Sprintf("does not run on the machine type %q with the architecture %s", p.machine.Name, architecture)))
	}
	if kubelet := kubeletVersion(p.worker, &p.shoot.Spec); (changed || p.kubeletChanges()) && !cloudprofile.AllowsKubelet(offered, kubelet) {
		errs = append(errs, field.Invalid(path, value, fmt.Sprintf("the machine image supports kubelet %s, but the pool has %s", *offered.KubeletVersionConstraint, kubelet)))
	}
	return errs
}

// mayExpire reports whether the pool may get an expired version of an image: its version is not usable any more, either, and the other
// one is not older.
func (p *pool) mayExpire() bool {
	if p.before == nil {
		return false
	}
	image, before := imageOf(p.worker), imageOf(p.before)
	if image[0] != before[0] || cloudprofile.IsOlder(image[1], before[1]) {
		return false
	}
	offered := cloudprofile.FindImageVersion(cloudprofile.FindImage(p.profile.Spec, before[0]), before[1])
	return offered == nil || offered.ClassificationAt(p.garden.Now()) == gardencorev1beta1.ClassificationExpired
}

// updatesInPlace checks that nodes that are updated in place can get a version of an image.
func (p *pool) updatesInPlace(offered *gardencorev1beta1.MachineImageVersion, path *field.Path) field.ErrorList {
	if !gardencorev1beta1.IsUpdateStrategyInPlace(p.worker.UpdateStrategy) {
		return nil
	}
	if !cloudprofile.UpdatesInPlace(offered) {
		return field.ErrorList{field.Invalid(path, offered.Version, "nodes cannot be updated in place to this version of the machine image")}
	}
	least := offered.InPlaceUpdates.MinVersionForUpdate
	if p.before == nil || least == nil || !cloudprofile.IsOlder(imageOf(p.before)[1], *least) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, offered.Version, fmt.Sprintf("nodes can be updated in place to this version of the machine image from %s on, but the pool has %s",
		*least, imageOf(p.before)[1]))}
}

// containerRuntimes checks that the image of the pool has its container runtimes.
func (p *pool) containerRuntimes() field.ErrorList {
	offered := p.offeredImage()
	if offered == nil || !changesPart(p, imageOf) && !changesPart(p, func(worker *gardencorev1beta1.Worker) *gardencorev1beta1.CRI { return worker.CRI }) {
		return nil
	}
	if missing := cloudprofile.MissingRuntime(offered, p.worker.CRI); missing != "" {
		return field.ErrorList{field.Invalid(p.path.Child("cri"), missing, fmt.Sprintf("the machine image %v does not have this container runtime", imageOf(p.worker)))}
	}
	return nil
}

// kubeletVersion returns the version of the kubelets of a pool: its own, or that of the cluster.
func kubeletVersion(worker *gardencorev1beta1.Worker, spec *gardencorev1beta1.ShootSpec) string {
	if worker.Kubernetes != nil && worker.Kubernetes.Version != nil {
		return *worker.Kubernetes.Version
	}
	return spec.Kubernetes.Version
}

func (p *pool) kubeletChanges() bool {
	return p.before == nil || kubeletVersion(p.worker, &p.shoot.Spec) != kubeletVersion(p.before, &p.old.Spec)
}
