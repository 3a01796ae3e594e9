// Package cloudprofile finds the profile that a Shoot uses, and computes what a NamespacedCloudProfile offers: the specification of its parent with its own changes. It finds what a profile offers: versions, machines, images, volumes and zones.
package cloudprofile

import (
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// ReferenceOf returns the profile that a Shoot uses, with the default of its kind. Its name is empty if the Shoot names none.
func ReferenceOf(shoot *corev1beta1.ShootSpec) corev1beta1.CloudProfileReference {
	reference := corev1beta1.CloudProfileReference{Name: ptr.Deref(shoot.CloudProfileName, "")}
	if shoot.CloudProfile != nil {
		reference = *shoot.CloudProfile
	}
	if reference.Kind == "" {
		reference.Kind = corev1beta1.CloudProfileReferenceKindCloudProfile
	}
	return reference
}

// IsComputed reports whether the status of a NamespacedCloudProfile has a specification: the controller-manager computes it.
func IsComputed(profile *corev1beta1.NamespacedCloudProfile) bool {
	return profile.Status.CloudProfileSpec.Type != ""
}
