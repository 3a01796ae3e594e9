// Package gateway contains the gateways of the Gateway API through which clients reach the API servers of shoots. They pass TLS connections through,
// and have the same names, labels, namespaces and addresses as the ingress gateways of Istio.
package gateway

import (
	"errors"
	"fmt"
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/apiserverexposure"
	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
	"github.com/trellis-k8s/trellis/pkg/component/istio"
	"github.com/trellis-k8s/trellis/pkg/component/nginxingress"
	"github.com/trellis-k8s/trellis/pkg/component/vpnseedserver"
	"github.com/trellis-k8s/trellis/pkg/exposure"
	"github.com/trellis-k8s/trellis/pkg/netpol"
	"github.com/trellis-k8s/trellis/pkg/webhooks/highavailability"
)

// Image is the name of the image.
const Image = "gateway"

// Class is the name of the GatewayClass, and of the ClusterRole of the gateways.
const Class = "gardener-gateway"

// controller is the name by which the program knows its GatewayClass (routing.Controller).
const controller = "trellis.local/gateway"

// The ports of the Pods: for requests with the method CONNECT, for connections with TLS, for health and for metrics.
const (
	portConnect = 8443
	portTLS     = 9443
	portHealth  = 8080
	portMetrics = 8081
	// portListener is the port of the Service that leads to portTLS.
	portListener = 443
)

const (
	account = constants.IstioIngressGatewayName
	version = apiserverexposure.GatewayAPIGroup + "/v1"
	// podsOfZone and mostPodsOfZone are the least and the greatest number of Pods for each zone, and cpuOfPod is the average use of CPU above which
	// there are more (Gardener).
	podsOfZone, mostPodsOfZone = 2, 16
	cpuOfPod                   = "2"
	// terminationSeconds is longer than the time in which the program ends: 15 seconds until load balancers know it, and 60 until connections are cut off.
	terminationSeconds = 90
)

// Values are the inputs of the component.
type Values struct {
	// Gateways are those of the seed.
	Gateways []exposure.Gateway
	// Image is the reference of the image named by the constant Image.
	Image string
	// DualStack is set if the cluster has IPv4 and IPv6.
	DualStack bool
	// VerticalPodAutoscaler adds VerticalPodAutoscalers. The cluster must define the kind.
	VerticalPodAutoscaler bool
	// SingleNode is set if the cluster has one node, on which a second Pod adds no availability.
	SingleNode bool
}

// Objects returns the objects of all gateways: the GatewayClass, the rights that they share, and for each one its namespace and what is in it.
func Objects(values Values) ([]client.Object, error) {
	accounts := make([]parts.Account, 0, len(values.Gateways))
	var objects []client.Object
	for _, gateway := range values.Gateways {
		of, err := values.gateway(gateway)
		if err != nil {
			return nil, fmt.Errorf("the gateway in namespace %s: %w", gateway.Namespace, err)
		}
		objects = append(objects, of...)
		accounts = append(accounts, parts.Account{Namespace: gateway.Namespace, Name: account})
	}
	class := object("GatewayClass", "", Class, map[string]any{
		"controllerName": controller, "description": "Passes TLS connections through to API servers.",
	})
	return append(append([]client.Object{class}, parts.ClusterRights(Class, nil, clusterRules(), accounts...)...), objects...), nil
}

// clusterRules lets gateways read what decides where connections lead, and write the status of routes. They read no Secrets.
func clusterRules() []rbacv1.PolicyRule {
	read := []string{"get", "list", "watch"}
	class := parts.Rule(apiserverexposure.GatewayAPIGroup, []string{"gatewayclasses/status"}, "update")
	class.ResourceNames = []string{Class}
	return []rbacv1.PolicyRule{
		parts.Rule(apiserverexposure.GatewayAPIGroup, []string{"gatewayclasses", "tlsroutes"}, read...),
		parts.Rule(apiserverexposure.GatewayAPIGroup, []string{"tlsroutes/status"}, "update"),
		class,
		parts.Rule("", []string{"services", "namespaces"}, read...),
		parts.Rule("discovery.k8s.io", []string{"endpointslices"}, read...),
	}
}

// rules lets a gateway read its Gateway, and write the status of it.
func rules() []rbacv1.PolicyRule {
	read := parts.Rule(apiserverexposure.GatewayAPIGroup, []string{"gateways"}, "get", "list", "watch")
	write := parts.Rule(apiserverexposure.GatewayAPIGroup, []string{"gateways/status"}, "update")
	read.ResourceNames, write.ResourceNames = []string{apiserverexposure.GatewayName}, []string{apiserverexposure.GatewayName}
	return []rbacv1.PolicyRule{read, write}
}

// gateway returns the objects of one gateway.
func (v Values) gateway(gateway exposure.Gateway) ([]client.Object, error) {
	if gateway.Namespace == "" || gateway.Service == "" || len(gateway.Labels) == 0 {
		return nil, errors.New("it needs a namespace, the name of its Service, and labels")
	}
	deployment, err := v.deployment(gateway)
	if err != nil {
		return nil, err
	}
	service := istio.Balanced(gateway, v.DualStack, portConnect, portTLS)
	service.Annotations[netpol.AliasAnnotation(constants.NetworkPolicyAllSeedScrapeTargets)] = parts.PortsAllowed(portMetrics)
	objects := []client.Object{
		istio.NamespaceOf(gateway), parts.ServiceAccount(gateway.Namespace, account, maps.Clone(gateway.Labels)), deployment, service,
		parts.Budget(deployment), listener(gateway),
		istio.Autoscaler(deployment, *deployment.Spec.Replicas, mostPodsOfZone*zonesOf(gateway), cpuOfPod),
	}
	objects = append(objects, parts.Rights(gateway.Namespace, account, maps.Clone(gateway.Labels), rules(), parts.Account{Namespace: gateway.Namespace, Name: account})...)
	if v.VerticalPodAutoscaler {
		objects = append(objects, parts.Autoscaler(deployment, "64Mi"))
	}
	return objects, nil
}

// listener returns the Gateway. TLSRoutes of the namespaces of control planes, and of the namespace garden, may be attached.
func listener(gateway exposure.Gateway) *unstructured.Unstructured {
	return object("Gateway", gateway.Namespace, apiserverexposure.GatewayName, map[string]any{
		"gatewayClassName": Class,
		"listeners": []any{map[string]any{
			"name": apiserverexposure.ListenerName, "port": int64(portListener), "protocol": "TLS", "tls": map[string]any{"mode": "Passthrough"},
			"allowedRoutes": map[string]any{
				"kinds": []any{map[string]any{"group": apiserverexposure.GatewayAPIGroup, "kind": "TLSRoute"}},
				"namespaces": map[string]any{"from": "Selector", "selector": map[string]any{"matchExpressions": []any{map[string]any{
					"key": constants.LabelGardenRole, "operator": "In", "values": []any{constants.RoleGarden, constants.RoleShoot},
				}}}},
			},
		}},
	})
}

// zonesOf returns the number of zones of a gateway, at least one.
func zonesOf(gateway exposure.Gateway) int32 { return max(int32(len(gateway.Zones)), 1) } //nolint:gosec // a few

// deployment returns the Deployment. An old Pod ends only when a new one is ready.
func (v Values) deployment(gateway exposure.Gateway) (*appsv1.Deployment, error) {
	replicas := podsOfZone * zonesOf(gateway)
	if v.SingleNode {
		replicas = 1
	}
	readiness := parts.HTTPProbe("/readyz", portHealth, corev1.URISchemeHTTP)
	readiness.PeriodSeconds = 2
	deployment, err := parts.Workload{
		Namespace: gateway.Namespace, Name: constants.IstioIngressGatewayName, Selector: maps.Clone(gateway.Labels), Replicas: replicas,
		Labels: map[string]string{highavailability.LabelType: parts.TypeServer}, PodLabels: policies(),
		PriorityClass: constants.PriorityClassSystemCritical, ServiceAccount: account, MountsToken: true,
		Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{
			MaxSurge: ptr.To(intstr.FromInt32(1)), MaxUnavailable: ptr.To(intstr.FromInt32(0)),
		}},
		Container: corev1.Container{
			Name: "gateway", Image: v.Image, Args: flags(gateway),
			Ports: []corev1.ContainerPort{
				{Name: "tls", ContainerPort: portTLS, Protocol: corev1.ProtocolTCP}, {Name: "http-proxy", ContainerPort: portConnect, Protocol: corev1.ProtocolTCP},
				{Name: "health", ContainerPort: portHealth, Protocol: corev1.ProtocolTCP}, {Name: "metrics", ContainerPort: portMetrics, Protocol: corev1.ProtocolTCP},
			},
			ReadinessProbe: readiness, LivenessProbe: parts.HTTPProbe("/healthz", portHealth, corev1.URISchemeHTTP),
			Resources: corev1.ResourceRequirements{Requests: parts.Requests("50m", "64Mi")},
		},
	}.Deployment()
	if err != nil {
		return nil, err
	}
	deployment.Spec.Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](terminationSeconds)
	return deployment, nil
}

func flags(gateway exposure.Gateway) []string {
	all := []string{
		"--gateway=" + gateway.Namespace + "/" + apiserverexposure.GatewayName, "--service=" + gateway.Service,
		"--tls-address=:" + strconv.Itoa(portTLS), "--connect-address=:" + strconv.Itoa(portConnect),
		"--health-address=:" + strconv.Itoa(portHealth), "--metrics-address=:" + strconv.Itoa(portMetrics),
	}
	if gateway.Balancer.ProxyProtocol {
		all = append(all, "--proxy-protocol")
	}
	return all
}

// policies lets gateways connect to the API server of the seed, to the API servers and the servers of the tunnel of all shoots, and to the ingress
// controller.
func policies() map[string]string {
	shoots := netpol.LabelPrefix + constants.NetworkPolicyAllShoots
	all := map[string]string{
		constants.LabelNetworkPolicyToDNS:              constants.NetworkPolicyAllowed,
		constants.LabelNetworkPolicyToRuntimeAPIServer: constants.NetworkPolicyAllowed,
		shoots + "-kube-apiserver-tcp-443":             netpol.LabelValue,
		nginxingress.LabelToController:                 netpol.LabelValue,
	}
	for server := range int32(vpnseedserver.Most) {
		all[fmt.Sprintf("%s-%s-tcp-%d", shoots, vpnseedserver.Service(server), vpnseedserver.PortAgents)] = netpol.LabelValue
	}
	return all
}

// object returns an object of the Gateway API.
func object(kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	metadata := map[string]any{"name": name}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}}
}
