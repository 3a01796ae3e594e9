package core

import (
	"k8s.io/apimachinery/pkg/util/version"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// before reports whether the Kubernetes version of a Shoot is older than the given one. It returns false if the version
// cannot be parsed.
func before(s shoot, minor string) bool {
	parsed, err := version.ParseGeneric(s.Spec.Kubernetes.Version)
	return err == nil && parsed.LessThan(version.MustParseGeneric(minor))
}

// syncUpdatedShoot syncs deprecated fields with their successors in the direction of the change that an update made. It
// removes deprecated fields that the new version of Kubernetes does not allow and that have the same values as their
// successors.
func syncUpdatedShoot(updated, old shoot) {
	if updated.DeletionTimestamp != nil {
		return
	}
	syncCloudProfile(updated, old)
	if updated.Spec.DNS == nil || old.Spec.DNS == nil {
		return
	}
	for i := range min(len(updated.Spec.DNS.Providers), len(old.Spec.DNS.Providers)) {
		syncDNSProvider(&updated.Spec.DNS.Providers[i], &old.Spec.DNS.Providers[i], before(updated, "1.35"))
	}
}

func syncCloudProfile(updated, old shoot) {
	name, profile := updated.Spec.CloudProfileName, updated.Spec.CloudProfile
	unchanged := text(name) == text(old.Spec.CloudProfileName)
	switch {
	case text(name) == "" || profile == nil:
	case before(updated, "1.34"):
		if !unchanged && !differ(profile, old.Spec.CloudProfile) {
			updated.Spec.CloudProfile = profileNamed(*name)
		} else if *name != profile.Name {
			updated.Spec.CloudProfileName = nil // the reference takes precedence, and the name is filled again where it is required
		}
	case unchanged && *name == profile.Name:
		updated.Spec.CloudProfileName = nil
	}
}

func syncDNSProvider(updated, old *gardencorev1beta1.DNSProvider, nameAllowed bool) {
	name, ref := updated.SecretName, updated.CredentialsRef
	if name == nil || ref == nil {
		return
	}
	isSecret := ref.APIVersion == "v1" && ref.Kind == "Secret"
	sameName, sameRef := text(name) == text(old.SecretName), !differ(ref, old.CredentialsRef)
	switch {
	case !nameAllowed:
		if sameName && isSecret && ref.Name == *name {
			updated.SecretName = nil
		}
	case sameName && !sameRef && isSecret:
		updated.SecretName = copyOf(ref.Name)
	case sameName && !sameRef:
		updated.SecretName = nil
	case sameRef && !sameName && isSecret:
		updated.CredentialsRef.Name = *name
	}
}

func copyOf(value string) *string { return &value }

// canonicalCloudProfile sets the reference to a profile from its deprecated name, and the name from the reference, as
// long as the version of Kubernetes allows the name.
func canonicalCloudProfile(s shoot) {
	if s.Spec.CloudProfile == nil && text(s.Spec.CloudProfileName) != "" && before(s, "1.34") {
		s.Spec.CloudProfile = profileNamed(*s.Spec.CloudProfileName)
	}
	profile := s.Spec.CloudProfile
	switch {
	case profile == nil:
	case profile.Kind == gardencorev1beta1.CloudProfileReferenceKindNamespacedCloudProfile:
		s.Spec.CloudProfileName = nil
	case before(s, "1.33"):
		s.Spec.CloudProfileName = copyOf(profile.Name)
	}
}

func profileNamed(name string) *gardencorev1beta1.CloudProfileReference {
	return &gardencorev1beta1.CloudProfileReference{Kind: gardencorev1beta1.CloudProfileReferenceKindCloudProfile, Name: name}
}
