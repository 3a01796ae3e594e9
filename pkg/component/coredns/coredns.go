// Package coredns contains the DNS server of a shoot cluster, and what adapts the number of its replicas. Names and settings are the same
// as in Gardener.
package coredns

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
	"github.com/trellis-k8s/trellis/pkg/webhooks/highavailability"
)

// The names of the images.
const (
	Image           = "coredns"
	ImageAutoscaler = "cluster-proportional-autoscaler"
)

// Name is the name of the Deployment, Service the name of the Service. ConfigMapCustom is where users add their own configuration.
const (
	Name            = "coredns"
	Service         = "kube-dns"
	ConfigMapCustom = "coredns-custom"
)

// PortServer is the port on which the Pods answer.
const PortServer = portServer

const (
	portServer  = 8053
	portMetrics = 9153
	portHealth  = 8080
	portReady   = 8181

	pathConfig = "/etc/coredns"
	pathCustom = "/etc/coredns/custom"
	nobody     = 65534
	// minReplicas is how many replicas run at least.
	minReplicas = 2
)

// Selector selects the Pods.
var Selector = map[string]string{"k8s-app": "kube-dns"}

// Values are the inputs of the component.
type Values struct {
	// Image and ImageAutoscaler are the references of the images named by the constants. The second one is needed only for the mode
	// cluster-proportional.
	Image, ImageAutoscaler string
	// ClusterDomain is the domain of Services, ClusterIPs are the addresses of the DNS server, one for each IP family.
	ClusterDomain string
	ClusterIPs    []string
	// Mode is how the number of replicas is adapted.
	Mode corev1beta1.CoreDNSAutoscalingMode
	// CommonSuffixes are those of spec.systemComponents.coreDNS.rewriting of the Shoot.
	CommonSuffixes []string
	// Zones is the number of zones of the worker pools.
	Zones int
	// ServerHost is the host name of the API server outside of the cluster.
	ServerHost string
	// VerticalPodAutoscaler adds a VerticalPodAutoscaler for the autoscaler of the replicas. The shoot must define the kind.
	VerticalPodAutoscaler bool
}

// Objects returns the objects of the component, all in the shoot.
func Objects(values Values) ([]client.Object, error) {
	deployment, err := deployment(values)
	if err != nil {
		return nil, err
	}
	labels := parts.SystemComponent(Selector)
	objects := []client.Object{
		parts.ServiceAccount(metav1.NamespaceSystem, Name, labels),
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: Name, Labels: labels},
			Data:       map[string]string{"Corefile": corefile(values)},
		},
		custom(), service(values), deployment, parts.SystemBudget(deployment), policy(),
	}
	objects = append(objects, rights()...)
	scaling, err := autoscaling(values)
	return append(objects, scaling...), err
}

// custom returns the ConfigMap with the configuration of users. It is created once, and never changed again.
func custom() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceSystem, Name: ConfigMapCustom, Labels: parts.SystemComponent(Selector),
			Annotations: map[string]string{resourcesv1alpha1.AnnotationIgnore: "true"},
		},
		Data: map[string]string{
			"changeme.server":   "# Rename this key, which must end with .server, and replace this line with server blocks of a Corefile.",
			"changeme.override": "# Rename this key, which must end with .override, and replace this line with plugins for the block of the cluster.",
		},
	}
}

func service(values Values) *corev1.Service {
	dns := func(name string, protocol corev1.Protocol) corev1.ServicePort {
		return corev1.ServicePort{Name: name, Port: 53, TargetPort: intstr.FromInt32(portServer), Protocol: protocol}
	}
	service := parts.SystemService(Service, Selector, false,
		dns("dns", corev1.ProtocolUDP), dns("dns-tcp", corev1.ProtocolTCP), parts.TCPPort("metrics", portMetrics, portMetrics))
	service.Labels["kubernetes.io/cluster-service"], service.Labels["kubernetes.io/name"] = "true", "CoreDNS"
	service.Spec.ClusterIP, service.Spec.ClusterIPs = values.ClusterIPs[0], values.ClusterIPs
	if len(values.ClusterIPs) > 1 {
		service.Spec.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicyPreferDualStack)
	}
	return service
}

func deployment(values Values) (*appsv1.Deployment, error) {
	deployment, err := parts.Workload{
		Namespace: metav1.NamespaceSystem, Name: Name, Selector: Selector,
		Labels:    parts.SystemComponent(map[string]string{highavailability.LabelType: parts.TypeServer}),
		PodLabels: parts.SystemComponent(nil), Replicas: minReplicas, PriorityClass: parts.PriorityClusterCritical,
		ServiceAccount: Name, MountsToken: true, Spread: parts.Spread(Selector),
		Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{
			MaxSurge: ptr.To(intstr.FromInt32(1)), MaxUnavailable: ptr.To(intstr.FromInt32(0)),
		}},
		Container: corev1.Container{
			Name: Name, Image: values.Image, Args: []string{"-conf", pathConfig + "/Corefile"}, Env: parts.ServerHost(values.ServerHost),
			Ports: []corev1.ContainerPort{
				{Name: "dns-udp", ContainerPort: portServer, Protocol: corev1.ProtocolUDP}, {Name: "dns-tcp", ContainerPort: portServer, Protocol: corev1.ProtocolTCP},
				{Name: "metrics", ContainerPort: portMetrics, Protocol: corev1.ProtocolTCP},
			},
			LivenessProbe: liveness(), ReadinessProbe: parts.HTTPProbe("/ready", portReady, corev1.URISchemeHTTP),
			Resources:    corev1.ResourceRequirements{Requests: parts.Requests("50m", "25Mi")},
			VolumeMounts: []corev1.VolumeMount{parts.Mount("config", pathConfig), parts.Mount("custom", pathCustom)},
		},
		Volumes: []corev1.Volume{parts.ConfigVolume("config", Name), parts.ConfigVolume("custom", ConfigMapCustom)},
	}.Deployment()
	if err != nil {
		return nil, err
	}
	pod := &deployment.Spec.Template.Spec
	pod.Tolerations, pod.DNSPolicy = parts.CriticalTolerations(), corev1.DNSDefault // not itself
	pod.Volumes[1].ConfigMap.Optional = ptr.To(true)                                // users may delete it
	asNobody(pod)
	// The program has this capability as a file, and could not be started without.
	pod.Containers[0].SecurityContext.Capabilities.Add = []corev1.Capability{"NET_BIND_SERVICE"}
	if values.Mode == corev1beta1.CoreDNSAutoscalingModeClusterProportional {
		deployment.Spec.Replicas = nil
	}
	return deployment, nil
}

// asNobody sets the user and group of a Pod.
func asNobody(pod *corev1.PodSpec) {
	security := pod.SecurityContext
	security.RunAsUser, security.RunAsGroup, security.FSGroup = ptr.To[int64](nobody), ptr.To[int64](nobody), ptr.To[int64](nobody)
}

func liveness() *corev1.Probe {
	probe := parts.HTTPProbe("/health", portHealth, corev1.URISchemeHTTP)
	probe.InitialDelaySeconds, probe.FailureThreshold = 60, 5
	return probe
}

func rights() []client.Object {
	labels := parts.SystemComponent(Selector)
	return parts.ClusterRights("system:coredns", labels, dnsRules(), parts.Account{Namespace: metav1.NamespaceSystem, Name: Name})
}

// policy allows clients to ask the DNS server, and the server to ask others and the API server.
func policy() *networkingv1.NetworkPolicy {
	port := func(number int32, protocols ...corev1.Protocol) []networkingv1.NetworkPolicyPort {
		var ports []networkingv1.NetworkPolicyPort
		for _, protocol := range protocols {
			ports = append(ports, networkingv1.NetworkPolicyPort{Protocol: ptr.To(protocol), Port: ptr.To(intstr.FromInt32(number))})
		}
		return ports
	}
	both := []corev1.Protocol{corev1.ProtocolUDP, corev1.ProtocolTCP}
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceSystem, Name: "gardener.cloud--allow-dns", Labels: parts.SystemComponent(nil),
			Annotations: map[string]string{constants.AnnotationGardenerDescription: "Allows CoreDNS to answer clients, and to ask other DNS servers and the API server."},
		},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "k8s-app", Operator: metav1.LabelSelectorOpIn, Values: []string{Selector["k8s-app"]}},
			}},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
			Ingress:     []networkingv1.NetworkPolicyIngressRule{{Ports: append(port(portServer, both...), port(portMetrics, corev1.ProtocolTCP)...)}},
			Egress:      []networkingv1.NetworkPolicyEgressRule{{Ports: append(port(53, both...), port(443, corev1.ProtocolTCP)...)}},
		},
	}
}
