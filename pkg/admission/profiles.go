package admission

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/cloudprofile"
)

// Profile is what the CloudProfile or NamespacedCloudProfile of a Shoot offers.
type Profile struct {
	// Root is the name of the CloudProfile: that of the Shoot, or the parent of its NamespacedCloudProfile.
	Root string
	// Spec is what is offered.
	Spec *gardencorev1beta1.CloudProfileSpec
}

// ProfileOf returns the profile of a Shoot in a namespace. It fails if the profile does not exist, and with 503 if a
// NamespacedCloudProfile has not been merged with its parent yet.
func (g *Garden) ProfileOf(ctx context.Context, namespace string, spec *gardencorev1beta1.ShootSpec) (Profile, error) {
	reference := cloudprofile.ReferenceOf(spec)
	switch {
	case reference.Name == "":
		return Profile{}, fmt.Errorf("spec.cloudProfile: name the CloudProfile of the Shoot")
	case reference.Kind == gardencorev1beta1.CloudProfileReferenceKindNamespacedCloudProfile:
		return g.namespacedProfile(ctx, namespace, reference.Name)
	}
	profile, err := g.CloudProfiles.Get(ctx, "", reference.Name)
	if apierrors.IsNotFound(err) {
		return Profile{}, fmt.Errorf("spec.cloudProfile: the CloudProfile %q does not exist", reference.Name)
	}
	if err != nil {
		return Profile{}, err
	}
	return Profile{Root: profile.Name, Spec: &profile.Spec}, nil
}

func (g *Garden) namespacedProfile(ctx context.Context, namespace, name string) (Profile, error) {
	profile, err := g.NamespacedCloudProfiles.Get(ctx, namespace, name)
	if apierrors.IsNotFound(err) {
		return Profile{}, fmt.Errorf("spec.cloudProfile: the NamespacedCloudProfile %s/%s does not exist", namespace, name)
	}
	if err != nil {
		return Profile{}, err
	}
	if !cloudprofile.IsComputed(profile) {
		return Profile{}, Unavailable("the controller-manager has not merged the NamespacedCloudProfile %s/%s with its parent yet; try again", namespace, name)
	}
	return Profile{Root: profile.Spec.Parent.Name, Spec: &profile.Status.CloudProfileSpec}, nil
}
