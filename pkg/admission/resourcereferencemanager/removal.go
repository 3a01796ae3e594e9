package resourcereferencemanager

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/admission"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// images are versions of machine images by the names of the images.
type images map[string]sets.Set[string]

func imagesOf(list []gardencorev1beta1.MachineImage) images {
	found := images{}
	for _, image := range list {
		for _, version := range image.Versions {
			found.add(image.Name, version.Version)
		}
	}
	return found
}

func (i images) add(name, version string) {
	if i[name] == nil {
		i[name] = sets.New[string]()
	}
	i[name].Insert(version)
}

func (i images) has(name, version string) bool { return i[name].Has(version) }

func (i images) minus(others images) images {
	left := images{}
	for name, versions := range i {
		if rest := versions.Difference(others[name]); len(rest) > 0 {
			left[name] = rest
		}
	}
	return left
}

// removal is what an update takes away from a profile.
type removal struct {
	versions sets.Set[string]
	images   images
	// maximum is a number of nodes that is lower than before; nil if it is not.
	maximum *int32
}

func removedFrom(old, updated *gardencorev1beta1.CloudProfileSpec) removal {
	gone := removal{versions: versionsOf(old).Difference(versionsOf(updated)), images: imagesOf(old.MachineImages).minus(imagesOf(updated.MachineImages))}
	if before, after := maximum(old.Limits), maximum(updated.Limits); after != nil && (before == nil || *after < *before) {
		gone.maximum = after
	}
	return gone
}

func versionsOf(spec *gardencorev1beta1.CloudProfileSpec) sets.Set[string] {
	versions := sets.New[string]()
	for _, version := range spec.Kubernetes.Versions {
		versions.Insert(version.Version)
	}
	return versions
}

func maximum(limits *gardencorev1beta1.Limits) *int32 {
	if limits == nil {
		return nil
	}
	return limits.MaxNodesTotal
}

// offers returns the versions of a profile that are not expired.
func offers(spec *gardencorev1beta1.CloudProfileSpec, now time.Time) removal {
	found := removal{versions: sets.New[string](), images: images{}}
	for i := range spec.Kubernetes.Versions {
		if version := &spec.Kubernetes.Versions[i]; version.ClassificationAt(now) != gardencorev1beta1.ClassificationExpired {
			found.versions.Insert(version.Version)
		}
	}
	for _, image := range spec.MachineImages {
		for i := range image.Versions {
			if version := &image.Versions[i]; version.ClassificationAt(now) != gardencorev1beta1.ClassificationExpired {
				found.images.add(image.Name, version.Version)
			}
		}
	}
	return found
}

func (r removal) nothing() bool { return len(r.versions)+len(r.images) == 0 && r.maximum == nil }

// unused returns an error if a Shoot uses what is removed. Select returns whether a Shoot uses the profile, and whether another
// limit applies to it.
func (r removal) unused(ctx context.Context, garden *admission.Garden, namespace string, choose func(*gardencorev1beta1.Shoot) (uses, hasLimit bool)) error {
	shoots := &gardencorev1beta1.ShootList{}
	if err := garden.ListLive(ctx, shoots, namespace); err != nil {
		return err
	}
	for i := range shoots.Items {
		shoot := &shoots.Items[i]
		uses, hasLimit := choose(shoot)
		if !uses {
			continue
		}
		if err := r.usedBy(shoot); err != nil {
			return err
		}
		if nodes := minimum(&shoot.Spec); r.maximum != nil && !hasLimit && nodes > *r.maximum {
			return fmt.Errorf("spec.limits.maxNodesTotal: must be at least %d, because the Shoot %s/%s has that many nodes", nodes, shoot.Namespace, shoot.Name)
		}
	}
	return nil
}

func (r removal) usedBy(shoot *gardencorev1beta1.Shoot) error {
	versions := []string{shoot.Spec.Kubernetes.Version}
	for _, pool := range shoot.Spec.Provider.Workers {
		if pool.Kubernetes != nil {
			versions = append(versions, ptr.Deref(pool.Kubernetes.Version, ""))
		}
		if image := pool.Machine.Image; image != nil && r.images.has(image.Name, ptr.Deref(image.Version, "")) {
			return fmt.Errorf("spec.machineImages: the version %q of %q cannot be removed, because the pool %q of the Shoot %s/%s uses it",
				*image.Version, image.Name, pool.Name, shoot.Namespace, shoot.Name)
		}
	}
	for _, version := range versions {
		if r.versions.Has(version) {
			return fmt.Errorf("spec.kubernetes.versions: the version %q cannot be removed, because the Shoot %s/%s uses it", version, shoot.Namespace, shoot.Name)
		}
	}
	return nil
}

func minimum(spec *gardencorev1beta1.ShootSpec) int32 {
	var nodes int32
	for _, pool := range spec.Provider.Workers {
		nodes += pool.Minimum
	}
	return nodes
}

// removedCapabilities returns the values of capabilities that a profile loses.
func removedCapabilities(old, updated []gardencorev1beta1.CapabilityDefinition) map[string]sets.Set[string] {
	values := func(definitions []gardencorev1beta1.CapabilityDefinition) images {
		found := images{}
		for _, definition := range definitions {
			for _, value := range definition.Values {
				found.add(definition.Name, value)
			}
		}
		return found
	}
	return values(old).minus(values(updated))
}

// capabilitiesOf returns the capabilities of the machine types and images of a NamespacedCloudProfile.
func capabilitiesOf(profile *gardencorev1beta1.NamespacedCloudProfile) []gardencorev1beta1.Capabilities {
	var found []gardencorev1beta1.Capabilities
	for _, machine := range profile.Spec.MachineTypes {
		found = append(found, machine.Capabilities)
	}
	for _, image := range profile.Spec.MachineImages {
		for _, version := range image.Versions {
			found = append(found, version.CapabilityFlavors...)
		}
	}
	return found
}
