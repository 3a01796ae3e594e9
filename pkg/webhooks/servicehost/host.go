package servicehost

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// variable is the environment variable from which client libraries read the address of the API server.
const variable = "KUBERNETES_SERVICE_HOST"

// setHost appends the variable to every container and init container that does not set it.
func setHost(spec *corev1.PodSpec, host string) {
	if host == "" {
		return // an empty variable makes client libraries believe that they are not in a cluster
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			env := &containers[i].Env
			if !slices.ContainsFunc(*env, func(e corev1.EnvVar) bool { return e.Name == variable }) {
				*env = append(*env, corev1.EnvVar{Name: variable, Value: host})
			}
		}
	}
}
