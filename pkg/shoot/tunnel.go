package shoot

import (
	"net"
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/apiserverexposure"
	"github.com/trellis-k8s/trellis/pkg/component/vpnseedserver"
	"github.com/trellis-k8s/trellis/pkg/component/vpnshoot"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/flow/table"
)

// The bundles of the tunnel from the API server to nodes, Pods and Services: its servers in the control plane, and its agents in the cluster.
const (
	bundleTunnel       = vpnseedserver.Name
	bundleTunnelAgents = prefixShoot + vpnshoot.Name
)

// gatewayPort is the port at which gateways accept connections with TLS.
const gatewayPort = 443

// tunnelPart returns the part of the servers. They are ready once an agent is connected, which needs nodes: operations do not wait for it, and
// the condition SystemComponentsHealthy reports it. They stop after the API server.
func (in Inputs) tunnelPart() table.Part {
	return table.Part{
		Name: bundleTunnel, Objects: in.tunnelServers, Unknown: in.unknownSecrets(), NeedsAsleep: []table.Need{table.RolledOut(bundleAPIServer)},
		DeletedAfter: []string{bundleAPIServer}, Adjust: adjustTunnel,
	}
}

func adjustTunnel(bundle *flow.Bundle) {
	flow.AwaitNoHealth(bundle)
	bundle.Labels[constants.LabelConditionType] = string(corev1beta1.ShootSystemComponentsHealthy)
}

// servers returns the number of servers: one, or two for a control plane that is highly available. An annotation overrides it.
func (in Inputs) servers() int32 {
	available := in.highlyAvailable()
	switch in.Shoot.Annotations[constants.AnnotationControlPlaneHighAvailabilityVPN] {
	case "true":
		available = true
	case "false":
		available = false
	}
	if available {
		return vpnseedserver.Most
	}
	return 1
}

// serverAddresses returns where agents reach the servers, by the names of the servers. A gateway of the API server forwards to them by these names.
// Without one, nodes resolve the names, and reach the Services in the seed.
func (in Inputs) serverAddresses() (map[string]string, error) {
	exposed, err := in.exposed()
	if err != nil {
		return nil, err
	}
	addresses := map[string]string{}
	for server := range in.servers() {
		host := vpnseedserver.Host(in.Namespace, server)
		addresses[host] = net.JoinHostPort(host, strconv.Itoa(vpnseedserver.PortAgents))
		if exposed.Gateway != nil {
			addresses[host] = net.JoinHostPort(in.outsideHost(), strconv.Itoa(gatewayPort))
		}
	}
	return addresses, nil
}

// tunnelRoutes returns the objects through which the gateways of the API server forward to the servers; none without gateways.
func (in Inputs) tunnelRoutes() ([]client.Object, error) {
	exposed, err := in.exposed()
	if err != nil || exposed.Gateway == nil {
		return nil, err
	}
	var all []client.Object
	for server := range in.servers() {
		objects, err := apiserverexposure.Objects(apiserverexposure.Values{
			Namespace: in.Namespace, Service: vpnseedserver.Service(server), Port: vpnseedserver.PortAgents, Mode: exposed.Mode,
			Hosts: []string{vpnseedserver.Host(in.Namespace, server)}, Gateways: in.openGateways(exposed),
		})
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	return all, nil
}

func (in Inputs) tunnelServers() ([]client.Object, error) {
	image, err := in.image(vpnseedserver.Image)
	if err != nil {
		return nil, err
	}
	routes, err := in.tunnelRoutes()
	if err != nil {
		return nil, err
	}
	objects, err := vpnseedserver.Objects(vpnseedserver.Values{
		Namespace: in.Namespace, Image: image, Servers: in.servers(), Asleep: in.hibernated(), VerticalPodAutoscaler: in.autoscaling(),
		RecommendOnly: in.recommendsForTunnel(), CA: in.trusted(constants.SecretNameCAVPN), Server: in.secret(vpnseedserver.SecretServer),
	})
	return append(objects, routes...), err
}

func (in Inputs) tunnelAgents() ([]client.Object, error) {
	image, err := in.shootImage(vpnseedserver.Image)
	if err != nil {
		return nil, err
	}
	servers, err := in.serverAddresses()
	if err != nil {
		return nil, err
	}
	return vpnshoot.Objects(vpnshoot.Values{
		Image: image, Servers: servers, CABundle: in.bundle(constants.SecretNameCAVPN),
		Certificate:           in.Secrets[vpnseedserver.SecretAgent].Current.Data,
		VerticalPodAutoscaler: in.scales(), RecommendOnly: in.recommendsForTunnel(),
	})
}

// recommendsForTunnel reports whether the requests of the tunnel must not be adapted.
func (in Inputs) recommendsForTunnel() bool {
	return in.Shoot.Annotations[constants.AnnotationControlPlaneVPNVPAUpdateDisabled] == "true"
}
