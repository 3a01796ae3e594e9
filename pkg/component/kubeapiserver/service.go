package kubeapiserver

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
	"github.com/trellis-k8s/trellis/pkg/exposure"
	"github.com/trellis-k8s/trellis/pkg/netpol"
)

// annotationExportTo names the namespaces of the gateways that forward connections to a Service (Istio).
const annotationExportTo = "networking.istio.io/exportTo"

// ServiceValues are the inputs of the Service.
type ServiceValues struct {
	// Namespace of the control plane. Name is the name of the Service, or empty for that of a shoot.
	Namespace, Name string
	// Gateways are the namespaces of the gateways through which clients outside of the cluster reach the API server.
	Gateways []string
	// Balancer are the settings of its own load balancer, or nil if it has none.
	Balancer *exposure.Balancer
}

// Labels returns the labels of the Service and of all objects of the API server.
func Labels() map[string]string { return maps.Clone(selector) }

// Service returns the Service through which clients in the seed reach the API server. It exists as long as the control
// plane.
func Service(values ServiceValues) ([]client.Object, error) {
	clients := []metav1.LabelSelector{
		parts.Namespaced(constants.GardenNamespace), parts.WithRole(constants.RoleExtension),
		{MatchLabels: map[string]string{constants.LabelNetworkPolicyAccessTargetAPIServer: constants.NetworkPolicyAllowed}},
	}
	for _, gateway := range values.Gateways {
		clients = append(clients, parts.Namespaced(gateway))
	}
	selectors, err := parts.NamespacesAllowed(clients...)
	if err != nil {
		return nil, err
	}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: values.Namespace, Name: Name,
			Labels: parts.Merge(selector, map[string]string{constants.LabelMutatedByControlPlaneWebhook: "true"}),
			Annotations: map[string]string{
				netpol.AliasAnnotation(constants.NetworkPolicyAllScrapeTargets): parts.PortsAllowed(port),
				netpol.AnnotationNamespaceAlias:                                 constants.NetworkPolicyAllShoots,
				netpol.AnnotationNamespaceSelectors:                             selectors,
			},
		},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, Selector: selector, IPFamilyPolicy: ptr.To(corev1.IPFamilyPolicyPreferDualStack),
			Ports: []corev1.ServicePort{{Name: Name, Port: port, TargetPort: intstr.FromInt32(port), Protocol: corev1.ProtocolTCP}},
		},
	}
	if values.Name != "" {
		service.Name = values.Name
	}
	if len(values.Gateways) > 0 {
		service.Labels[constants.LabelAPIServerExposure] = constants.APIServerExposureGardenerManaged
		service.Annotations[annotationExportTo] = strings.Join(values.Gateways, ",")
	}
	if values.Balancer != nil {
		parts.Balance(service, *values.Balancer, port)
	}
	return []client.Object{service}, nil
}

// GatewaysOf returns the namespaces of the gateways that the Service of an API server names.
func GatewaysOf(service client.Object) []string {
	var names []string
	for name := range strings.SplitSeq(service.GetAnnotations()[annotationExportTo], ",") {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}
