package vpa

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// leaderElection enables leader election with a Lease in a namespace.
func leaderElection(namespace string) []string {
	return []string{"--leader-elect=true", "--leader-elect-resource-namespace=" + namespace}
}

// rates limits the request rate of a program, sustained and in bursts.
var rates = []string{"--kube-api-qps=100", "--kube-api-burst=120"}

func admissionControllerArgs() []string {
	return append([]string{
		"--v=2",
		"--stderrthreshold=info",
		"--tls-cert-file=" + tlsPath + "/tls.crt",
		"--tls-private-key=" + tlsPath + "/tls.key",
		"--address=:8944",
		fmt.Sprintf("--port=%d", portServer),
		"--register-webhook=false", // the registration is an object of the component
	}, rates...)
}

// recommenderArgs allows small requests for small Pods. The default minimum is 25m and 250Mi.
func recommenderArgs(namespace string) []string {
	return slices.Concat([]string{
		"--v=2",
		"--stderrthreshold=info",
		"--address=:8942",
		"--pod-recommendation-min-cpu-millicores=5",
		"--pod-recommendation-min-memory-mb=10",
		"--recommendation-margin-fraction=0.05",
		"--recommender-interval=1m",
		"--memory-saver=true",
	}, rates, leaderElection(namespace))
}

// updaterArgs makes the updater also act on workloads with one replica.
func updaterArgs(namespace string) []string {
	return slices.Concat([]string{
		"--v=2",
		"--stderrthreshold=info",
		"--address=:8943",
		"--min-replicas=1",
		"--eviction-tolerance=1.0",
		"--eviction-rate-burst=1",
		"--eviction-rate-limit=-1",
		"--evict-after-oom-threshold=48h",
		"--updater-interval=1m",
	}, rates, leaderElection(namespace))
}

// maxAllowed returns the arguments of the recommender for the maximum recommendation.
func maxAllowed(resources corev1.ResourceList) ([]string, error) {
	var arguments []string
	for _, name := range slices.Sorted(maps.Keys(resources)) {
		quantity := resources[name]
		switch name {
		case corev1.ResourceCPU, corev1.ResourceMemory:
			arguments = append(arguments, fmt.Sprintf("--container-recommendation-max-allowed-%s=%s", name, quantity.String()))
		default:
			return nil, fmt.Errorf("settings.verticalPodAutoscaler.maxAllowed: %q must be cpu or memory", name)
		}
	}
	return arguments, nil
}
