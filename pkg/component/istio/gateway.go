package istio

import (
	"cmp"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
	"github.com/trellis-k8s/trellis/pkg/exposure"
	"github.com/trellis-k8s/trellis/pkg/netpol"
	"github.com/trellis-k8s/trellis/pkg/webhooks/highavailability"
)

// The ports of gateways.
const (
	portStatus  = 15021
	portStats   = 15090
	portProxy   = 8443
	portTLS     = 9443
	portHTTPS   = 443
	leastOfZone = 2
	mostOfZone  = 16
)

const account = constants.IstioIngressGatewayName + "-service-account"

// GatewayValues are the inputs of the component.
type GatewayValues struct {
	Gateway exposure.Gateway
	// Image is the reference of the image named by ImageGateway.
	Image string
	// DualStack is set if the cluster has IPv4 and IPv6.
	DualStack bool
	// VerticalPodAutoscaler adds a VerticalPodAutoscaler. The cluster must define the kind.
	VerticalPodAutoscaler bool
	// SingleNode is set if the cluster has one node, on which a second Pod adds no availability.
	SingleNode bool
	// Serves is the label by which Pods may connect to the API server behind the gateway, or empty for those of all Shoots.
	Serves string
}

// Gateway returns the objects of an ingress gateway, in its namespace.
func Gateway(values GatewayValues) ([]client.Object, error) {
	gateway := values.Gateway
	if gateway.Namespace == "" || gateway.Service == "" || len(gateway.Labels) == 0 {
		return nil, fmt.Errorf("a gateway needs a namespace, the name of its Service, and labels; got %+v", gateway)
	}
	deployment, err := gatewayDeployment(values)
	if err != nil {
		return nil, err
	}
	zones := max(int32(len(gateway.Zones)), 1) //nolint:gosec // a few
	objects := []client.Object{
		NamespaceOf(gateway), parts.ServiceAccount(gateway.Namespace, account, clone(gateway.Labels)), deployment,
		Balanced(values.Gateway, values.DualStack, portProxy, portTLS), internalService(gateway), parts.Budget(deployment),
		Autoscaler(deployment, *deployment.Spec.Replicas, mostOfZone*zones, "2"),
	}
	objects = append(objects, parts.Rights(gateway.Namespace, constants.IstioIngressGatewayName+"-sds", clone(gateway.Labels), readSecrets(),
		parts.Account{Namespace: gateway.Namespace, Name: account})...)
	if values.VerticalPodAutoscaler {
		objects = append(objects, parts.NewAutoscaler(gateway.Namespace, deployment.Name, deployment.Name, map[string]any{
			"containerName": "istio-proxy", "controlledValues": "RequestsOnly",
		}, map[string]any{"containerName": "*", "mode": "Off"}))
	}
	filters, err := envoyFilters(gateway)
	return append(append(objects, listeners(gateway)...), filters...), err
}

func gatewayDeployment(values GatewayValues) (*appsv1.Deployment, error) {
	gateway := values.Gateway
	replicas := leastOfZone * max(int32(len(gateway.Zones)), 1) //nolint:gosec // a few
	if values.SingleNode {
		replicas = 1
	}
	deployment, err := parts.Workload{
		Namespace: gateway.Namespace, Name: constants.IstioIngressGatewayName, Selector: clone(gateway.Labels), Replicas: replicas,
		Labels: map[string]string{highavailability.LabelType: parts.TypeServer}, PodLabels: gatewayPolicies(values.Serves),
		PriorityClass: constants.PriorityClassSystemCritical, ServiceAccount: account, MountsToken: true,
		Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{
			MaxSurge: ptr.To(intstr.FromInt32(1)), MaxUnavailable: ptr.To(intstr.FromInt32(0)),
		}},
		Container: gatewayContainer(values), Volumes: gatewayVolumes(),
	}.Deployment()
	if err != nil {
		return nil, err
	}
	setUser(deployment)
	deployment.Spec.Template.Annotations = parts.Merge(deployment.Spec.Template.Annotations, map[string]string{
		"sidecar.istio.io/inject": "false", "sidecar.istio.io/statsEvictionInterval": "6m", "proxy.istio.io/config": proxyConfig,
	})
	return deployment, nil
}

// proxyConfig limits what a client can use of a gateway.
const proxyConfig = `protocolDetectionTimeout: 100ms
runtimeValues:
  overload.global_downstream_max_connections: "750000"
  overload.premature_reset_total_stream_count: "100"
  overload.premature_reset_min_stream_lifetime_seconds: "1"
`

// gatewayPolicies lets gateways connect to the control plane of Istio, and to the API server with a label, or those of all Shoots.
func gatewayPolicies(serves string) map[string]string {
	return map[string]string{
		constants.LabelNetworkPolicyToDNS:                                                             constants.NetworkPolicyAllowed,
		netpol.LabelPrefix + constants.IstioSystemNamespace + "-istiod-tcp-15012":                     netpol.LabelValue,
		cmp.Or(serves, netpol.LabelPrefix+constants.NetworkPolicyAllShoots+"-kube-apiserver-tcp-443"): netpol.LabelValue,
	}
}

func gatewayContainer(values GatewayValues) corev1.Container {
	host := values.Gateway.Namespace + ".svc.cluster.local"
	return corev1.Container{
		Name: "istio-proxy", Image: values.Image, Args: []string{
			"proxy", "router", "--domain=" + host, "--proxyLogLevel=info", "--proxyComponentLogLevel=misc:error",
			"--log_output_level=default:info,ads:error",
		},
		Ports: []corev1.ContainerPort{
			{Name: "status-port", ContainerPort: portStatus}, {Name: "tcp", ContainerPort: portTLS}, {Name: "http-proxy", ContainerPort: portProxy},
			{Name: "http-envoy-prom", ContainerPort: portStats},
		},
		Env: append(variables(map[string]string{
			"CA_ADDR": "istiod.istio-system.svc:15012", "ISTIO_META_CLUSTER_ID": "Kubernetes", "ISTIO_META_MESH_ID": "cluster.local",
			"ISTIO_META_ROUTER_MODE": "standard", "ISTIO_META_WORKLOAD_NAME": constants.IstioIngressGatewayName, "JWT_POLICY": "third-party-jwt",
			"PILOT_CERT_PROVIDER": "istiod", "TRUST_DOMAIN": "cluster.local",
		}), field("NODE_NAME", "spec.nodeName"), field("POD_NAME", "metadata.name"), field("POD_NAMESPACE", "metadata.namespace"),
			field("INSTANCE_IP", "status.podIP"), field("HOST_IP", "status.hostIP"), field("SERVICE_ACCOUNT", "spec.serviceAccountName")),
		ReadinessProbe: &corev1.Probe{
			ProbeHandler:        corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz/ready", Port: intstr.FromInt32(portStatus)}},
			InitialDelaySeconds: 1, PeriodSeconds: 2, TimeoutSeconds: 1, FailureThreshold: 30,
		},
		Resources: corev1.ResourceRequirements{Requests: parts.Requests("300m", "600Mi")},
		VolumeMounts: []corev1.VolumeMount{
			parts.Mount("config-volume", "/etc/istio/config"), parts.Mount("istiod-ca-cert", "/var/run/secrets/istio"),
			parts.Mount("istio-token", "/var/run/secrets/tokens"), parts.Mount("podinfo", "/etc/istio/pod"),
			{Name: "istio-envoy", MountPath: "/etc/istio/proxy"}, {Name: "istio-data", MountPath: "/var/lib/istio/data"},
			{Name: "workload-socket", MountPath: "/var/run/secrets/workload-spiffe-uds"},
		},
	}
}

func gatewayVolumes() []corev1.Volume {
	empty := func(name string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
	}
	optional := func(name, from string) corev1.Volume { // Istio writes it
		volume := parts.ConfigVolume(name, from)
		volume.ConfigMap.Optional = ptr.To(name == "config-volume")
		return volume
	}
	info := corev1.Volume{Name: "podinfo", VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{
		Items: []corev1.DownwardAPIVolumeFile{
			{Path: "labels", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"}},
			{Path: "annotations", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations"}},
		},
	}}}
	return []corev1.Volume{
		empty("istio-envoy"), empty("istio-data"), empty("workload-socket"), info, token("istio-token"),
		optional("config-volume", configMap), optional("istiod-ca-cert", "istio-ca-root-cert"),
	}
}

// Balanced returns the Service of type LoadBalancer of a gateway, for both implementations of gateways. ports are those that
// everybody may connect to; the port 443 of the Service leads to the last one.
func Balanced(gateway exposure.Gateway, dualStack bool, ports ...int32) *corev1.Service {
	balancer := gateway.Balancer
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: gateway.Namespace, Name: gateway.Service, Labels: clone(gateway.Labels),
			Annotations: parts.Merge(balancer.Annotations, map[string]string{
				netpol.AnnotationFromWorld:      parts.PortsAllowed(ports...),
				netpol.AnnotationNamespaceAlias: constants.NetworkPolicyAllIstioIngresses,
				netpol.AnnotationNamespaceSelectors: `[{"matchLabels":{"gardener.cloud/role":"extension"}},` +
					`{"matchLabels":{"gardener.cloud/role":"shoot"}},{"matchLabels":{"kubernetes.io/metadata.name":"garden"}}]`,
			}),
		},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, Selector: clone(gateway.Labels), LoadBalancerClass: balancer.Class, LoadBalancerIP: balancer.IP,
			ExternalTrafficPolicy: balancer.TrafficPolicy, IPFamilyPolicy: ptr.To(corev1.IPFamilyPolicyPreferDualStack),
		},
	}
	if dualStack {
		service.Spec.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicyRequireDualStack)
	}
	for i, port := range ports {
		if i == len(ports)-1 {
			service.Spec.Ports = append(service.Spec.Ports, parts.TCPPort("tcp", portHTTPS, port))
		} else {
			service.Spec.Ports = append(service.Spec.Ports, parts.TCPPort("http-proxy", port, port))
		}
	}
	return service
}

// internalService is for clients in the seed.
func internalService(gateway exposure.Gateway) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: gateway.Namespace, Name: constants.IstioIngressGatewayInternalName,
			Annotations: map[string]string{netpol.AnnotationFromWorld: parts.PortsAllowed(portTLS)},
		},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, Selector: clone(gateway.Labels), Ports: []corev1.ServicePort{parts.TCPPort("tcp", portHTTPS, portTLS)},
		},
	}
}
