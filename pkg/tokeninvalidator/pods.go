package tokeninvalidator

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// usedSecrets returns the sorted names of the Secrets whose key "token" a Pod uses in volumes, including projected
// ones, and in environment variables. It omits Secrets if the Pod uses only other keys, and those that only a volume
// driver or an image pull uses, which do not need tokens.
func usedSecrets(spec *corev1.PodSpec) []string {
	var names []string
	for i := range spec.Volumes {
		names = append(names, usedByVolume(&spec.Volumes[i])...)
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			names = append(names, usedByVariables(containers[i].EnvFrom, containers[i].Env)...)
		}
	}
	for i := range spec.EphemeralContainers {
		names = append(names, usedByVariables(spec.EphemeralContainers[i].EnvFrom, spec.EphemeralContainers[i].Env)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func usedByVolume(volume *corev1.Volume) []string {
	var names []string
	if secret := volume.Secret; secret != nil && hasToken(secret.Items) {
		names = append(names, secret.SecretName)
	}
	if volume.Projected == nil {
		return names
	}
	for _, source := range volume.Projected.Sources {
		if secret := source.Secret; secret != nil && hasToken(secret.Items) {
			names = append(names, secret.Name)
		}
	}
	return names
}

// hasToken reports whether the token is among the items of a volume. A volume without items has all keys.
func hasToken(items []corev1.KeyToPath) bool {
	return len(items) == 0 || slices.ContainsFunc(items, func(item corev1.KeyToPath) bool { return item.Key == corev1.ServiceAccountTokenKey })
}

func usedByVariables(sources []corev1.EnvFromSource, variables []corev1.EnvVar) []string {
	var names []string
	for _, source := range sources {
		if source.SecretRef != nil {
			names = append(names, source.SecretRef.Name)
		}
	}
	for _, variable := range variables {
		if variable.ValueFrom == nil || variable.ValueFrom.SecretKeyRef == nil {
			continue
		}
		if ref := variable.ValueFrom.SecretKeyRef; ref.Key == corev1.ServiceAccountTokenKey {
			names = append(names, ref.Name)
		}
	}
	return names
}
