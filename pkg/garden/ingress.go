package garden

import (
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/apiserverexposure"
	"github.com/trellis-k8s/trellis/pkg/component/nginxingress"
	"github.com/trellis-k8s/trellis/pkg/exposure"
	"github.com/trellis-k8s/trellis/pkg/flow/table"
	"github.com/trellis-k8s/trellis/pkg/inventory"
)

// bundleIngress has the ingress controller of the runtime cluster. Its name is that of the Seed's, so that a Garden and a Seed hand it over.
const bundleIngress = inventory.Ingress

// withoutIngressController returns why the runtime cluster has no ingress controller, empty if it has one.
func (in Inputs) withoutIngressController() string {
	switch {
	case len(in.Garden.Spec.RuntimeCluster.Ingress.Domains) == 0:
		return "spec.runtimeCluster.ingress.domains is empty"
	case nginxingress.Disabled(in.Config.FeatureGates, nginxingress.GateOfGarden):
		return "the feature gate " + nginxingress.GateOfGarden + " is enabled"
	}
	return ""
}

// ingressParts returns the part with the ingress controller.
func (in Inputs) ingressParts() []table.Part {
	return []table.Part{{
		Name: bundleIngress, Absent: in.withoutIngressController(), Removed: true, Objects: in.ingressController, Unknown: in.unknownExposure(),
		Needs: []table.Need{table.Applied(bundleSystem), table.Healthy(bundleIstioKinds)}, DeletedAfter: []string{},
	}}
}

// ingressHosts returns the names of all hosts of the domains for Ingresses.
func (in Inputs) ingressHosts() []string {
	var hosts []string
	for _, domain := range in.Garden.Spec.RuntimeCluster.Ingress.Domains {
		hosts = append(hosts, "*."+domain.Name)
	}
	return hosts
}

// ingressController returns the objects of the ingress controller. It is exposed like the API server of the virtual garden.
func (in Inputs) ingressController() ([]client.Object, error) {
	values := nginxingress.RuntimeValues{
		Namespace: in.Namespace, Replicas: in.replicas(2), PriorityClass: constants.PriorityClassGardenSystem300,
		Config: in.Garden.Spec.RuntimeCluster.Ingress.Controller.ProviderConfig, VerticalPodAutoscaler: true,
	}
	if err := values.SetImages(in.image); err != nil {
		return nil, err
	}
	if in.routes().Has(exposure.OwnBalancer) {
		values.Balancer = ptr.To(exposure.BalancerOfGarden(in.Garden))
	}
	if !in.routes().Has(exposure.GardenGatewayNamespace) {
		return nginxingress.RuntimeObjects(values)
	}
	values.Gateways = []string{exposure.GardenGatewayNamespace}
	objects, err := nginxingress.RuntimeObjects(values)
	if err != nil {
		return nil, err
	}
	forwarding, err := apiserverexposure.Objects(apiserverexposure.Values{
		Namespace: in.Namespace, Service: nginxingress.Service, Port: nginxingress.Port, Mode: exposure.Istio, Hosts: in.ingressHosts(),
		Gateways: []exposure.Gateway{exposure.GatewayOfGarden(in.Garden)},
	})
	return append(objects, forwarding...), err
}
