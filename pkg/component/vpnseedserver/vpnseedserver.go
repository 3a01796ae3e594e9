// Package vpnseedserver contains the servers of the tunnel through which the API server of a shoot reaches its nodes, Pods and Services. Names,
// labels, ports and certificates are the same as in Gardener.
package vpnseedserver

import (
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
	"github.com/trellis-k8s/trellis/pkg/netpol"
	"github.com/trellis-k8s/trellis/pkg/secrets"
	"github.com/trellis-k8s/trellis/pkg/webhooks/highavailability"
)

// Image is the name of the image. The agents have the same one.
const Image = "tunnel"

// Name is the name of the StatefulSet, and of the Service for API servers.
const Name = "vpn-seed-server"

// The names of the configs of certificates: of the servers, and of the two kinds of their clients.
const (
	SecretServer = Name
	SecretClient = "kube-apiserver-http-proxy-client" //nolint:gosec // a name
	SecretAgent  = "vpn-shoot-client"                 //nolint:gosec // a name
)

// The ports of the servers. Agents connect to PortAgents, through a gateway, and API servers to PortClients.
const (
	PortAgents  = 1194
	PortClients = 9443
	portHealth  = 8080
)

// Most is the most servers that a control plane has.
const Most = 2

// terminationSeconds is how long a Pod may take to end: longer than it serves after the signal to end.
const terminationSeconds = 30

const (
	pathServer = "/srv/secrets/vpn-server"
	pathCA     = "/srv/secrets/ca-vpn"
)

// Values are the inputs of the component.
type Values struct {
	// Namespace of the control plane.
	Namespace string
	// Image is the reference of the image named by the constant Image.
	Image string
	// Servers is the number of servers, at most Most. Asleep is set while the shoot is hibernated: no server runs.
	Servers int32
	Asleep  bool
	// VerticalPodAutoscaler adds a VerticalPodAutoscaler. The seed must define the kind. It only recommends if RecommendOnly is set.
	VerticalPodAutoscaler, RecommendOnly bool
	// CA and Server are the names of the Secrets with the bundle of ca-vpn and the certificate of the config SecretServer.
	CA, Server string
}

// selector selects the Pods.
var selector = map[string]string{"app": Name}

// URL returns the URL of the servers for API servers in the same namespace.
func URL() string { return "https://" + Name + ":" + strconv.Itoa(PortClients) }

// Service returns the name of the Service of one server, at which agents reach it.
func Service(server int32) string { return fmt.Sprintf("%s-%d", Name, server) }

// Host returns the name of one server in its certificate. It is unique in the seed: a gateway can choose the server by it.
func Host(namespace string, server int32) string {
	return Service(server) + "." + namespace + ".svc.cluster.local"
}

// Secrets returns the configs of the certificates of the servers and of their clients.
func Secrets(namespace string) []secrets.Config {
	names := parts.ServiceNames(namespace, Name)
	for server := range int32(Most) {
		names = append(names, parts.ServiceNames(namespace, Service(server))...)
	}
	return []secrets.Config{
		{Name: SecretServer, Kind: secrets.KindServer, CommonName: Name, DNSNames: names, SignedBy: constants.SecretNameCAVPN},
		{Name: SecretClient, Kind: secrets.KindClient, CommonName: SecretClient, SignedBy: constants.SecretNameCAVPN},
		{Name: SecretAgent, Kind: secrets.KindClient, CommonName: SecretAgent, SignedBy: constants.SecretNameCAVPN},
	}
}

// Objects returns the objects in the seed.
func Objects(values Values) ([]client.Object, error) {
	set, template, err := statefulSet(values)
	if err != nil {
		return nil, err
	}
	objects := []client.Object{clients(values.Namespace)}
	for server := range values.Servers {
		service, err := agents(values.Namespace, server)
		if err != nil {
			return nil, err
		}
		objects = append(objects, service)
	}
	objects = append(objects, set, parts.Budget(template))
	if values.VerticalPodAutoscaler {
		autoscaler := parts.AutoscalerOf(values.Namespace, Name+"-vpa", map[string]any{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": Name},
			map[string]any{"containerName": Name, "controlledValues": "RequestsOnly"}, map[string]any{"containerName": "*", "mode": "Off"})
		if values.RecommendOnly {
			if err := parts.RecommendOnly(autoscaler); err != nil {
				return nil, err
			}
		}
		objects = append(objects, autoscaler)
	}
	return objects, nil
}

// clients returns the Service for API servers. Its endpoints are the servers to which an agent is connected.
func clients(namespace string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: Name, Labels: selector,
			Annotations: map[string]string{netpol.AliasAnnotation(constants.NetworkPolicyAllScrapeTargets): parts.PortsAllowed(portHealth)},
		},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, Selector: selector,
			Ports: []corev1.ServicePort{parts.TCPPort("http-proxy", PortClients, PortClients), parts.TCPPort("metrics", portHealth, portHealth)},
		},
	}
}

// agents returns the Service at which agents reach one server. The server is not ready before an agent is connected.
func agents(namespace string, server int32) (*corev1.Service, error) {
	selectors, err := parts.NamespacesAllowed(parts.WithRole(constants.RoleIstioIngress), parts.WithRole(constants.RoleExposureClassHandler))
	if err != nil {
		return nil, err
	}
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: Service(server), Labels: selector,
			Annotations: map[string]string{
				netpol.AnnotationNamespaceAlias: constants.NetworkPolicyAllShoots, netpol.AnnotationNamespaceSelectors: selectors,
			},
		},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, PublishNotReadyAddresses: true,
			Selector: parts.Merge(selector, map[string]string{appsv1.StatefulSetPodNameLabel: Service(server)}),
			Ports:    []corev1.ServicePort{parts.TCPPort("openvpn", PortAgents, PortAgents)},
		},
	}, nil
}

// statefulSet returns the StatefulSet, and a Deployment with the same Pods. A server is replaced only while the others have agents.
func statefulSet(values Values) (*appsv1.StatefulSet, *appsv1.Deployment, error) {
	replicas := values.Servers
	if values.Asleep {
		replicas = 0
	}
	template, err := parts.Workload{
		Namespace: values.Namespace, Name: Name, Selector: selector,
		Labels: map[string]string{
			constants.LabelGardenRole: constants.RoleControlPlane, highavailability.LabelType: parts.TypeServer,
			constants.LabelMutatedByControlPlaneWebhook: "true",
		},
		PodLabels: map[string]string{constants.LabelGardenRole: constants.RoleControlPlane},
		Replicas:  replicas, PriorityClass: constants.PriorityClassSystem300,
		Volumes: []corev1.Volume{parts.SecretVolume("server", values.Server), parts.SecretVolume("ca-vpn", values.CA)},
		Container: corev1.Container{
			Name: Name, Image: values.Image, Args: flags(),
			Ports: []corev1.ContainerPort{
				{Name: "agents", ContainerPort: PortAgents, Protocol: corev1.ProtocolTCP}, {Name: "clients", ContainerPort: PortClients, Protocol: corev1.ProtocolTCP},
				{Name: "health", ContainerPort: portHealth, Protocol: corev1.ProtocolTCP},
			},
			ReadinessProbe: readiness(), LivenessProbe: parts.HTTPProbe("/healthz", portHealth, corev1.URISchemeHTTP),
			Resources:    corev1.ResourceRequirements{Requests: parts.Requests("10m", "32Mi")},
			VolumeMounts: []corev1.VolumeMount{parts.Mount("server", pathServer), parts.Mount("ca-vpn", pathCA)},
		},
	}.Deployment()
	if err != nil {
		return nil, nil, err
	}
	spec := &template.Spec.Template.Spec
	spec.TerminationGracePeriodSeconds = ptr.To[int64](terminationSeconds)
	set := &appsv1.StatefulSet{ObjectMeta: template.ObjectMeta, Spec: appsv1.StatefulSetSpec{
		Replicas: ptr.To(replicas), RevisionHistoryLimit: template.Spec.RevisionHistoryLimit, Selector: template.Spec.Selector, ServiceName: Name,
		Template: template.Spec.Template,
		// Otherwise a server without an agent would never be replaced.
		PodManagementPolicy: appsv1.ParallelPodManagement,
		UpdateStrategy: appsv1.StatefulSetUpdateStrategy{
			Type: appsv1.RollingUpdateStatefulSetStrategyType, RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{MaxUnavailable: ptr.To(intstr.FromInt32(1))},
		},
	}}
	// The agents have the number of servers in their configuration.
	set.Annotations = parts.Merge(set.Annotations, map[string]string{highavailability.AnnotationReplicas: strconv.Itoa(int(values.Servers))})
	return set, template, nil
}

// readiness reports within seconds that an agent is connected.
func readiness() *corev1.Probe {
	probe := parts.HTTPProbe("/readyz", portHealth, corev1.URISchemeHTTP)
	probe.PeriodSeconds, probe.FailureThreshold = 5, 1
	return probe
}

func flags() []string {
	return []string{
		"server", "--agents-address=:" + strconv.Itoa(PortAgents), "--clients-address=:" + strconv.Itoa(PortClients),
		"--health-address=:" + strconv.Itoa(portHealth), "--tls-cert-file=" + pathServer + "/tls.crt", "--tls-private-key-file=" + pathServer + "/tls.key",
		"--ca-file=" + pathCA + "/" + secrets.KeyBundleCert, "--agent-name=" + SecretAgent, "--client-name=" + SecretClient,
	}
}
