// Package apiserverproxy contains the proxies on the nodes of a shoot that serve the address that its API server advertises, so that the Service
// kubernetes of the cluster has an endpoint that all nodes reach. They forward connections to the gateway of the seed. Names and labels are the same
// as in Gardener.
package apiserverproxy

import (
	"errors"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
)

// Name is the name of the DaemonSet.
const Name = "apiserver-proxy"

const (
	// portAPIServer is the port of the advertised address.
	portAPIServer = 443
	// portGateway is the port at which gateways accept requests with the method CONNECT.
	portGateway = 8443
	// portHealth is the port for health and metrics on nodes.
	portHealth = 16910
)

// Values are the inputs of the component.
type Values struct {
	// Image is the reference of the image of the gateway.
	Image string
	// Address is the address that the API server advertises.
	Address string
	// Host is the host name of the API server for clients outside of the seed. It leads to the gateway.
	Host string
	// Destination is the name of the API server for gateways of Istio.
	Destination string
	// VerticalPodAutoscaler adds a VerticalPodAutoscaler. The shoot must define the kind.
	VerticalPodAutoscaler bool
}

// selector selects the Pods.
var selector = map[string]string{"app": "kubernetes", "role": Name}

// Objects returns the objects of the component, all in the shoot.
func Objects(values Values) ([]client.Object, error) {
	if values.Address == "" || values.Host == "" {
		return nil, errors.New("the proxies for the API server need the address that it advertises, and its host")
	}
	daemon, err := parts.Daemon{
		Name: Name, Selector: selector, PodLabels: parts.NodeCritical(nil), PriorityClass: parts.PriorityNodeCritical, HostNetwork: true,
		DNSPolicy:      corev1.DNSDefault, // the DNS server of the cluster might need the proxy
		InitContainers: []corev1.Container{values.address("setup", "--once")},
		Containers:     []corev1.Container{values.address("sidecar"), values.proxy()},
	}.DaemonSet()
	if err != nil {
		return nil, err
	}
	objects := []client.Object{daemon}
	if values.VerticalPodAutoscaler {
		objects = append(objects, parts.DaemonAutoscaler(Name, Name, "proxy", ""))
	}
	return objects, nil
}

// address returns a container that gives a node the address. It may change the network of the node, and nothing else.
func (v Values) address(name string, flags ...string) corev1.Container {
	return corev1.Container{
		Name: name, Image: v.Image, Args: append([]string{"node-address", "--ip-address=" + v.Address, "--interface=" + Name}, flags...),
		Resources: corev1.ResourceRequirements{Requests: parts.Requests("5m", "15Mi")}, SecurityContext: security("NET_ADMIN"),
	}
}

// proxy returns the container that forwards connections.
func (v Values) proxy() corev1.Container {
	probe := parts.HTTPProbe("/readyz", portHealth, corev1.URISchemeHTTP)
	return corev1.Container{
		Name: "proxy", Image: v.Image, Args: []string{
			"node-proxy", "--address=" + net.JoinHostPort(v.Address, strconv.Itoa(portAPIServer)), "--gateway=" + net.JoinHostPort(v.Host, strconv.Itoa(portGateway)),
			"--host=" + net.JoinHostPort(v.Host, strconv.Itoa(portAPIServer)), "--destination=" + v.Destination, "--health-address=:" + strconv.Itoa(portHealth),
		},
		Ports:          []corev1.ContainerPort{{Name: "metrics", ContainerPort: portHealth, HostPort: portHealth, Protocol: corev1.ProtocolTCP}},
		ReadinessProbe: probe, LivenessProbe: probe,
		Resources:       corev1.ResourceRequirements{Requests: parts.Requests("5m", "20Mi")},
		SecurityContext: security("NET_BIND_SERVICE"),
	}
}

// security allows one capability. Only the user root has it.
func security(capability corev1.Capability) *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true), RunAsUser: ptr.To[int64](0), RunAsNonRoot: ptr.To(false),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{capability}},
	}
}
