package garden

import (
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/apiserverexposure"
	"github.com/trellis-k8s/trellis/pkg/component/discoveryserver"
	"github.com/trellis-k8s/trellis/pkg/exposure"
	"github.com/trellis-k8s/trellis/pkg/flow/table"
)

const (
	bundleDiscovery          = discoveryserver.Name + suffixRuntime
	bundleDiscoveryInVirtual = discoveryserver.Name + suffixVirtual
	// bundleDiscoveryExposure has the objects through which the gateway forwards connections to the discovery server.
	bundleDiscoveryExposure = discoveryserver.Name + "-sni"
)

// discovery returns spec.virtualCluster.gardener.gardenerDiscoveryServer, nil if it is not set.
func (in Inputs) discovery() *operatorv1alpha1.GardenerDiscoveryServerConfig {
	return in.virtual().Gardener.GardenerDiscoveryServer
}

// discoveryHost returns the host of the discovery server, empty if the Garden has no domain for it.
func (in Inputs) discoveryHost() string {
	if server := in.discovery(); server != nil && server.Domain != nil {
		return server.Domain.Name
	}
	if domains := in.Garden.Spec.RuntimeCluster.Ingress.Domains; len(domains) > 0 {
		return "discovery." + domains[0].Name
	}
	return ""
}

// discoveryParts returns the parts of the discovery server; none if the Garden declares none, which cannot change back. The garden's API server creates
// the namespace that it reads.
func (in Inputs) discoveryParts() []table.Part {
	if in.discovery() == nil {
		return nil
	}
	unexposed, unknown := "", table.Join(in.unknownSecrets(), in.unknownExposure())
	if in.discoveryHost() == "" {
		unknown = "spec.virtualCluster.gardener.gardenerDiscoveryServer.domain or spec.runtimeCluster.ingress.domains must name a domain for the discovery server"
	}
	if in.unknownExposure() == "" && !in.routes().Has(exposure.GardenGatewayNamespace) {
		unexposed = "the gateway does not serve the garden"
	}
	return []table.Part{
		{
			Name: bundleDiscoveryInVirtual, Target: table.Shoot, Unknown: unknown, DeletedAfter: []string{bundleDiscovery},
			Objects: func() ([]client.Object, error) { return discoveryserver.VirtualObjects(in.discoveryHost()), nil },
			Needs:   []table.Need{table.Applied(bundleVirtualSystem), in.ready(bundleAPI)},
		},
		{
			Name: bundleDiscovery, Objects: in.discoveryServer,
			Unknown: table.Join(unknown, in.unknownToken(bundleDiscovery, discoveryserver.Name)),
			Needs:   []table.Need{in.ready(bundleAPIInVirtual), table.Applied(bundleDiscoveryInVirtual)}, DeletedAfter: []string{bundleDiscoveryExposure},
		},
		{
			Name: bundleDiscoveryExposure, Absent: unexposed, Removed: true, Objects: in.discoveryForwarding, Unknown: unknown,
			Needs: []table.Need{table.Applied(bundleDiscovery, bundleIstioKinds)}, DeletedAfter: []string{},
		},
	}
}

// discoveryServer returns the objects of the discovery server in the runtime cluster. It is exposed like the API server of the virtual garden.
func (in Inputs) discoveryServer() ([]client.Object, error) {
	image, err := in.image(discoveryserver.Image)
	if err != nil {
		return nil, err
	}
	documents, err := in.workloadIdentityDocuments()
	if err != nil {
		return nil, err
	}
	values := discoveryserver.Values{
		Namespace: in.Namespace, Image: image, Replicas: in.replicas(2), Kubeconfig: in.secret(constants.SecretNameGenericTokenKubeconfig),
		Identities:  documents,
		Certificate: ptr.Deref(in.discovery().TLSSecretName, ""),
	}
	if values.Certificate == "" {
		values.Certificate = in.secret(discoveryserver.Name)
	}
	if in.routes().Has(exposure.OwnBalancer) {
		balancer := exposure.BalancerOfGarden(in.Garden)
		values.Balancer = &balancer
	}
	return discoveryserver.RuntimeObjects(values)
}

// discoveryForwarding returns the objects through which the gateway forwards connections to the discovery server, without decrypting them.
func (in Inputs) discoveryForwarding() ([]client.Object, error) {
	return apiserverexposure.Objects(apiserverexposure.Values{
		Namespace: in.Namespace, Service: discoveryserver.Name, Port: discoveryserver.Port, Mode: exposure.Istio, Hosts: []string{in.discoveryHost()},
		Gateways: []exposure.Gateway{exposure.GatewayOfGarden(in.Garden)},
	})
}
