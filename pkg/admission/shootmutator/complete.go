package shootmutator

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/cloudprofile"
)

// isComplete reports whether a Shoot has complete versions, and an architecture and image for each of its pools.
func isComplete(spec *gardencorev1beta1.ShootSpec) bool {
	return cloudprofile.IsComplete(spec.Kubernetes.Version) && !slices.ContainsFunc(spec.Provider.Workers, func(worker gardencorev1beta1.Worker) bool {
		kubernetes, image := worker.Kubernetes, worker.Machine.Image
		return kubernetes != nil && kubernetes.Version != nil && !cloudprofile.IsComplete(*kubernetes.Version) ||
			image == nil || image.Version == nil || !cloudprofile.IsComplete(*image.Version) || worker.Machine.Architecture == nil
	})
}

// completion completes a Shoot. The old specification is nil for a new Shoot.
type completion struct {
	spec, old *gardencorev1beta1.ShootSpec
	profile   *gardencorev1beta1.CloudProfileSpec
	now       time.Time
}

// complete fills what a Shoot leaves to its CloudProfile. It returns an error for each field that cannot be filled.
func complete(spec, old *gardencorev1beta1.ShootSpec, profile *gardencorev1beta1.CloudProfileSpec, now time.Time) field.ErrorList {
	c := completion{spec, old, profile, now}
	path := field.NewPath("spec")
	before := ""
	if old != nil {
		before = old.Kubernetes.Version
	}
	var errs field.ErrorList
	if old == nil || before != spec.Kubernetes.Version {
		errs = c.kubernetes(&spec.Kubernetes.Version, before, path.Child("kubernetes", "version"))
	}
	for i := range spec.Provider.Workers {
		worker := &spec.Provider.Workers[i]
		if before := c.workerBefore(worker.Name); before != nil && equality.Semantic.DeepEqual(worker, before) {
			continue // was accepted as it is
		}
		errs = append(errs, c.worker(worker, path.Child("provider", "workers").Index(i))...)
	}
	return errs
}

// kubernetes completes a version of Kubernetes to the newest supported one. It does not lower the version of an existing cluster.
func (c *completion) kubernetes(version *string, before string, path *field.Path) field.ErrorList {
	if cloudprofile.IsComplete(*version) {
		return nil
	}
	newest, err := cloudprofile.NewestKubernetes(c.profile, *version, c.now)
	if before != "" && cloudprofile.CheckParts(*version) == nil && cloudprofile.Matches(before, *version) && (err != nil || cloudprofile.IsOlder(newest, before)) {
		newest, err = before, nil
	}
	if err != nil {
		return field.ErrorList{field.Invalid(path, *version, err.Error())}
	}
	*version = newest
	return nil
}

func (c *completion) worker(worker *gardencorev1beta1.Worker, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	before := c.workerBefore(worker.Name)
	if kubernetes := worker.Kubernetes; kubernetes != nil && kubernetes.Version != nil {
		kubelet := ""
		if before != nil && before.Kubernetes != nil && before.Kubernetes.Version != nil {
			kubelet = *before.Kubernetes.Version
		}
		errs = c.kubernetes(kubernetes.Version, kubelet, path.Child("kubernetes", "version"))
	}
	machine := cloudprofile.FindMachineType(c.profile, worker.Machine.Type)
	if worker.Machine.Architecture == nil {
		worker.Machine.Architecture = copyOf(architecture(c.profile, machine))
	}
	return append(errs, c.image(worker, before, machine, path.Child("machine", "image"))...)
}

func (c *completion) workerBefore(name string) *gardencorev1beta1.Worker {
	if c.old == nil {
		return nil
	}
	i := slices.IndexFunc(c.old.Provider.Workers, func(worker gardencorev1beta1.Worker) bool { return worker.Name == name })
	if i < 0 {
		return nil
	}
	return &c.old.Provider.Workers[i]
}

// architecture returns the architecture of pools that do not state one: that of the machine type, if it has only one.
func architecture(profile *gardencorev1beta1.CloudProfileSpec, machine *gardencorev1beta1.MachineType) string {
	if machine != nil {
		if found := cloudprofile.ArchitecturesOf(profile, machine); len(found) == 1 {
			return found[0]
		}
	}
	return gardencorev1beta1.ArchitectureAMD64
}

// image completes the machine image of a pool. A pool keeps its image if the update does not name another one. A new pool gets the
// newest version of the image that it names, or of the first image of the profile that runs on its machines.
func (c *completion) image(
	worker, before *gardencorev1beta1.Worker, machine *gardencorev1beta1.MachineType, path *field.Path,
) field.ErrorList {
	image := worker.Machine.Image
	version := ""
	if image != nil && image.Version != nil {
		version = *image.Version
	}
	if image != nil && cloudprofile.IsComplete(version) {
		return nil
	}
	if kept := keptImage(image, version, before); kept != nil {
		worker.Machine.Image = kept
		return nil
	}
	if err := cloudprofile.CheckParts(version); err != nil {
		return field.ErrorList{field.Invalid(path.Child("version"), version, err.Error())}
	}
	needs := &cloudprofile.ImageNeeds{
		Machine: machine, Architecture: *worker.Machine.Architecture, Kubelet: c.spec.Kubernetes.Version, CRI: worker.CRI,
		InPlace: gardencorev1beta1.IsUpdateStrategyInPlace(worker.UpdateStrategy),
	}
	if worker.Kubernetes != nil && worker.Kubernetes.Version != nil {
		needs.Kubelet = *worker.Kubernetes.Version
	}
	for i := range c.profile.MachineImages {
		offered := &c.profile.MachineImages[i]
		if image != nil && image.Name != "" && image.Name != offered.Name {
			continue
		}
		newest := cloudprofile.NewestImage(c.profile, offered, version, needs, c.now)
		if newest == nil {
			continue
		}
		if image == nil {
			image = &gardencorev1beta1.ShootMachineImage{}
			worker.Machine.Image = image
		}
		image.Name, image.Version = offered.Name, copyOf(newest.Version)
		return nil
	}
	return field.ErrorList{field.Invalid(path, describe(image), fmt.Sprintf("the CloudProfile has no version of a machine image that can be used now and runs "+
		"on the machine type %q with the architecture %s and kubelet %s", worker.Machine.Type, needs.Architecture, needs.Kubelet))}
}

// keptImage returns the image that a pool had before if the update leaves it out, or names it without a version or with the begin of
// its version.
func keptImage(image *gardencorev1beta1.ShootMachineImage, version string, before *gardencorev1beta1.Worker) *gardencorev1beta1.ShootMachineImage {
	if before == nil || before.Machine.Image == nil || before.Machine.Image.Version == nil {
		return nil
	}
	old := before.Machine.Image
	if image == nil || image.Name == "" && version == "" {
		return old.DeepCopy()
	}
	if image.Name != old.Name || version != "" {
		return nil
	}
	kept := image.DeepCopy()
	kept.Version = copyOf(*old.Version)
	return kept
}

func describe(image *gardencorev1beta1.ShootMachineImage) string {
	if image == nil {
		return ""
	}
	if image.Version == nil {
		return image.Name
	}
	return strings.TrimPrefix(image.Name+" "+*image.Version, " ")
}
