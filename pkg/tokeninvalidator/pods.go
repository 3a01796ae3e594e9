package tokeninvalidator

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// usedSecrets returns the names of the Secrets whose key "token" a Pod uses: in volumes, also projected ones, and in variables. A
// Secret from which a volume or variable uses only other keys is not included, nor are those that only the driver of a volume or
// the pull of an image gets, which have no use for tokens. They are in order.
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
