package parts

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/netpol"
)

// ProgramWithRights returns the objects of a program of a control plane that changes objects in its namespace: its account with permissions, its
// Service, its Deployment and its PodDisruptionBudget.
func ProgramWithRights(deployment *appsv1.Deployment, service *corev1.Service, selector map[string]string, rules []rbacv1.PolicyRule) []client.Object {
	namespace, name := deployment.Namespace, deployment.Name
	objects := []client.Object{ServiceAccount(namespace, name, selector), service, deployment, Budget(deployment)}
	return append(objects, Rights(namespace, name, selector, rules, Account{Namespace: namespace, Name: name})...)
}

// MetricsService returns a Service without an address, for the Prometheus of the control plane.
func MetricsService(namespace, name string, selector map[string]string, ports ...corev1.ServicePort) *corev1.Service {
	numbers := make([]int32, 0, len(ports))
	for _, port := range ports {
		numbers = append(numbers, port.Port)
	}
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: selector,
			Annotations: map[string]string{netpol.AliasAnnotation(constants.NetworkPolicyAllScrapeTargets): PortsAllowed(numbers...)},
		},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: corev1.ClusterIPNone, Selector: selector, Ports: ports},
	}
}
