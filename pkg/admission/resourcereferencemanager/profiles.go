package resourcereferencemanager

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/trellis-k8s/trellis/pkg/admission"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/cloudprofile"
)

// validateProfile reads the users of a profile live before it admits that something is removed.
func validateProfile(ctx context.Context, _ *admission.Request, garden *admission.Garden, profile, old *gardencorev1beta1.CloudProfile) error {
	if profile.DeletionTimestamp != nil {
		return nil
	}
	gone := removedFrom(&old.Spec, &profile.Spec)
	added := imagesOf(profile.Spec.MachineImages).minus(imagesOf(old.Spec.MachineImages))
	capabilities := removedCapabilities(old.Spec.MachineCapabilities, profile.Spec.MachineCapabilities)
	if gone.nothing() && len(added)+len(capabilities) == 0 {
		return nil
	}
	list := &gardencorev1beta1.NamespacedCloudProfileList{}
	if err := garden.ListLive(ctx, list, ""); err != nil {
		return err
	}
	dropsAll := len(profile.Spec.MachineCapabilities) == 0
	children, limited := sets.New[string](), sets.New[string]()
	for i := range list.Items {
		child := &list.Items[i]
		if child.Spec.Parent.Name != profile.Name {
			continue
		}
		children.Insert(admission.Key(child.Namespace, child.Name))
		if maximum(child.Spec.Limits) != nil {
			limited.Insert(admission.Key(child.Namespace, child.Name))
		}
		if err := conflictWith(child, gone, added, capabilities, dropsAll); err != nil {
			return err
		}
	}
	if gone.nothing() {
		return nil
	}
	return gone.unused(ctx, garden, "", func(shoot *gardencorev1beta1.Shoot) (uses, hasLimit bool) {
		reference := cloudprofile.ReferenceOf(&shoot.Spec)
		if reference.Kind == gardencorev1beta1.CloudProfileReferenceKindNamespacedCloudProfile {
			key := admission.Key(shoot.Namespace, reference.Name)
			return children.Has(key), limited.Has(key)
		}
		return reference.Name == profile.Name, false
	})
}

// conflictWith returns an error if a NamespacedCloudProfile extends what its parent loses, or has what its parent gets.
func conflictWith(child *gardencorev1beta1.NamespacedCloudProfile, gone removal, added images, capabilities map[string]sets.Set[string], dropsAll bool) error {
	who := fmt.Sprintf("the NamespacedCloudProfile %s/%s", child.Namespace, child.Name)
	if child.Spec.Kubernetes != nil {
		for _, version := range child.Spec.Kubernetes.Versions {
			if gone.versions.Has(version.Version) {
				return fmt.Errorf("spec.kubernetes.versions: the version %q cannot be removed, because %s extends it", version.Version, who)
			}
		}
	}
	for _, image := range child.Spec.MachineImages {
		for _, version := range image.Versions {
			if gone.images.has(image.Name, version.Version) {
				return fmt.Errorf("spec.machineImages: the version %q of %q cannot be removed, because %s extends it", version.Version, image.Name, who)
			}
			if added.has(image.Name, version.Version) {
				return fmt.Errorf("spec.machineImages: the version %q of %q cannot be added, because %s has one of its own", version.Version, image.Name, who)
			}
		}
	}
	for _, used := range capabilitiesOf(child) {
		for name, values := range used {
			isArchitecture := dropsAll && name == gardencorev1beta1.CapabilityArchitecture // which has a field of its own then
			if lost := capabilities[name]; !isArchitecture && lost.HasAny(values...) {
				return fmt.Errorf("spec.machineCapabilities: the values %v of %q cannot be removed, because %s uses one", sets.List(lost), name, who)
			}
		}
	}
	return nil
}

// validateNamespacedProfile judges only what the parent does not offer, either.
func validateNamespacedProfile(ctx context.Context, _ *admission.Request, garden *admission.Garden, profile, old *gardencorev1beta1.NamespacedCloudProfile) error {
	if profile.DeletionTimestamp != nil {
		return nil
	}
	before, after := specOf(&old.Spec), specOf(&profile.Spec)
	if removedFrom(before, after).nothing() && !loosens(old.Spec.Limits, profile.Spec.Limits) {
		return nil
	}
	parent, err := garden.CloudProfiles.Get(ctx, "", profile.Spec.Parent.Name)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("spec.parent: the CloudProfile %q does not exist", profile.Spec.Parent.Name)
	}
	if err != nil {
		return err
	}
	offered := offers(&parent.Spec, garden.Now())
	if maximum(before.Limits) == nil {
		before.Limits = parent.Spec.Limits
	}
	if maximum(after.Limits) == nil {
		after.Limits = parent.Spec.Limits
	}
	gone := removedFrom(before, after)
	gone.versions = gone.versions.Difference(offered.versions)
	gone.images = gone.images.minus(offered.images)
	if gone.nothing() {
		return nil
	}
	return gone.unused(ctx, garden, profile.Namespace, func(shoot *gardencorev1beta1.Shoot) (uses, hasLimit bool) {
		reference := cloudprofile.ReferenceOf(&shoot.Spec)
		return reference.Kind == gardencorev1beta1.CloudProfileReferenceKindNamespacedCloudProfile && reference.Name == profile.Name, false
	})
}

func specOf(spec *gardencorev1beta1.NamespacedCloudProfileSpec) *gardencorev1beta1.CloudProfileSpec {
	found := &gardencorev1beta1.CloudProfileSpec{MachineImages: spec.MachineImages, Limits: spec.Limits}
	if spec.Kubernetes != nil {
		found.Kubernetes = *spec.Kubernetes
	}
	return found
}

// loosens reports whether an update gives up the limit of a profile, so that another one applies.
func loosens(old, updated *gardencorev1beta1.Limits) bool {
	return maximum(old) != nil && maximum(updated) == nil
}
