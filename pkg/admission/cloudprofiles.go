package admission

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// CloudProfileReferenceOf returns the reference of a Shoot to its profile, from either field; nil if it has none.
func CloudProfileReferenceOf(spec *gardencorev1beta1.ShootSpec) *gardencorev1beta1.CloudProfileReference {
	if reference := spec.CloudProfile; reference != nil {
		kind := reference.Kind
		if kind == "" {
			kind = gardencorev1beta1.CloudProfileReferenceKindCloudProfile
		}
		return &gardencorev1beta1.CloudProfileReference{Kind: kind, Name: reference.Name}
	}
	if name := ptr.Deref(spec.CloudProfileName, ""); name != "" {
		return &gardencorev1beta1.CloudProfileReference{Kind: gardencorev1beta1.CloudProfileReferenceKindCloudProfile, Name: name}
	}
	return nil
}

// CloudProfileOf returns what the profile of a Shoot offers: the specification of its CloudProfile, or the merged one of its
// NamespacedCloudProfile. A profile that does not exist is an error, which refuses a request.
func (g *Garden) CloudProfileOf(ctx context.Context, shoot *gardencorev1beta1.Shoot) (*gardencorev1beta1.CloudProfileSpec, error) {
	reference := CloudProfileReferenceOf(&shoot.Spec)
	if reference == nil {
		return nil, fmt.Errorf("spec.cloudProfile of the Shoot %s/%s is empty", shoot.Namespace, shoot.Name)
	}
	var spec *gardencorev1beta1.CloudProfileSpec
	var err error
	if reference.Kind == gardencorev1beta1.CloudProfileReferenceKindNamespacedCloudProfile {
		var profile *gardencorev1beta1.NamespacedCloudProfile
		if profile, err = g.NamespacedCloudProfiles.Get(ctx, shoot.Namespace, reference.Name); err == nil {
			spec = &profile.Status.CloudProfileSpec
		}
	} else {
		var profile *gardencorev1beta1.CloudProfile
		if profile, err = g.CloudProfiles.Get(ctx, "", reference.Name); err == nil {
			spec = &profile.Spec
		}
	}
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("the %s %q of the Shoot %s/%s does not exist", reference.Kind, reference.Name, shoot.Namespace, shoot.Name)
	}
	return spec, err
}
