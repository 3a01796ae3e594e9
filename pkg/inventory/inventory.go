// Package inventory lists what exists once in a cluster, and says who owns it if the cluster is the runtime cluster of a garden and a seed
// at the same time: the operator, or gardenlet. Both ask this package, so that they agree. The flow of a seed releases what the operator owns,
// and that of a garden releases it when the garden is deleted and the seed stays.
package inventory

import (
	"slices"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

const (
	// FlowSeed is the name of the flow of a seed. ManagedResources of this flow show that a cluster is a seed.
	FlowSeed = constants.RoleSeed
	// FlowShoot is the name of the flow of Shoots. In a Seed, it marks their ManagedResources, the Secrets with manifests, and what the Seed remembers
	// of Shoots.
	FlowShoot = constants.RoleShoot
	// NetworkPolicies are the general network policies of all namespaces: a ManagedResource for the namespace garden, and a controller for all.
	NetworkPolicies = "network-policies"
	// EvictionRequirements are a controller that changes VerticalPodAutoscalers.
	EvictionRequirements = "vpa-eviction-requirements"
	// Istio is the control plane of Istio.
	Istio = "istio-system"
	// IstioKinds are the definitions of the kinds of Istio.
	IstioKinds = "crds-istio"
	// Gateways are the ingress gateways of a seed. They need the control plane of Istio.
	Gateways = "istio"
	// Ingress is the ingress controller of a cluster.
	Ingress = "nginx-ingress"
	// ResourceManager is the resource-manager of the cluster, which applies everything else.
	ResourceManager = "gardener-resource-manager"
)

// always are the parts that the operator owns in each runtime cluster, by the names of their ManagedResources. Names of components that this
// version does not have yet are those of Gardener.
var always = []string{
	"crds-managedresources", "crds-etcd", "crds-vpa", ResourceManager, "vpa", "etcd-druid", NetworkPolicies, EvictionRequirements,
	Ingress, "fluent-operator", "fluent-bit", "vali", "plutono", "kube-state-metrics", "prometheus-operator",
}

// Cluster is what decides who owns the parts of a cluster.
type Cluster struct {
	// Garden is set if the cluster is the runtime cluster of a garden.
	Garden bool
	// Istio is set if the garden exposes its API server through Istio. The control plane of Istio is then the operator's.
	Istio bool
}

// IsOperators reports whether the operator owns a part, which is given by the name of its ManagedResource or controller.
func (c Cluster) IsOperators(name string) bool {
	if name == Istio || name == IstioKinds {
		return c.Garden && c.Istio
	}
	return c.Garden && slices.Contains(always, name)
}
