package seccompprofile

import (
	corev1 "k8s.io/api/core/v1"
)

// setProfile sets the profile of a Pod that does not have one. It ignores the profiles of containers, which take
// precedence.
func setProfile(spec *corev1.PodSpec) {
	if spec.OS != nil && spec.OS.Name == corev1.Windows {
		return // Windows has no seccomp, and the API server rejects a profile
	}
	if spec.SecurityContext == nil {
		spec.SecurityContext = &corev1.PodSecurityContext{}
	}
	if spec.SecurityContext.SeccompProfile == nil {
		spec.SecurityContext.SeccompProfile = &corev1.SeccompProfile{}
	}
	if profile := spec.SecurityContext.SeccompProfile; profile.Type == "" {
		profile.Type = corev1.SeccompProfileTypeRuntimeDefault
	}
}
