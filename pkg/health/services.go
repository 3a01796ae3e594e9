package health

import corev1 "k8s.io/api/core/v1"

// checkService implements the rule of gardener-resource-manager: a load balancer needs an address.
func checkService(service *corev1.Service) Verdict {
	if service.Spec.Type == corev1.ServiceTypeLoadBalancer && len(service.Status.LoadBalancer.Ingress) == 0 {
		return Verdict{Unhealthy: "service is missing ingress status"}
	}
	return Verdict{}
}
