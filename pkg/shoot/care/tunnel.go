package care

import (
	"slices"
	"strings"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// The ManagedResources that report on the tunnel from the API server to the nodes: its servers, which are ready while an agent is connected, its
// agents, and metrics-server, whose API the API server asks for through the tunnel all the time.
const (
	tunnelServers = "vpn-seed-server"
	tunnelAgents  = "shoot-core-vpn-shoot"
	tunnelUser    = "shoot-core-metrics-server"
)

// Reasons of the condition (Gardener).
const (
	reasonNoTunnel     = "NoTunnelDeployed"
	reasonTunnelBroken = "TunnelConnectionBroken"
)

// reasonNoAnswer is the reason of a ManagedResource with an API that does not answer.
const reasonNoAnswer = "APIService" + resourcesv1alpha1.ReasonKindUnhealthy

// tunnel returns why the API server does not reach nodes, Pods and Services; nil if it does, or if that is not known. Nothing is asked for this:
// the state is that of watched objects.
func (o Observation) tunnel() *finding {
	servers := o.named(tunnelServers)
	if !hasWorkers(o.Shoot) || servers == nil {
		return nil
	}
	if o.named(tunnelAgents) == nil {
		return &finding{
			status: corev1beta1.ConditionFalse, reason: reasonNoTunnel,
			message: "the API server does not reach nodes, Pods and Services: the agents of the tunnel have not been deployed",
		}
	}
	var texts []string
	if state := healthOf(servers); state.Status == resourcesv1alpha1.ConditionFalse {
		texts = append(texts, "no agent of the tunnel is connected")
	}
	if user := o.named(tunnelUser); user != nil {
		if state := healthOf(user); state.Status == resourcesv1alpha1.ConditionFalse && state.Reason == reasonNoAnswer {
			texts = append(texts, "the last request was not answered")
		}
	}
	if len(texts) == 0 {
		return nil
	}
	return &finding{
		status: corev1beta1.ConditionFalse, reason: reasonTunnelBroken,
		message: "the API server does not reach nodes, Pods and Services: " + strings.Join(texts, ", "),
	}
}

// named returns a ManagedResource, nil if it does not exist.
func (o Observation) named(name string) *resourcesv1alpha1.ManagedResource {
	at := slices.IndexFunc(o.Components, func(mr resourcesv1alpha1.ManagedResource) bool { return mr.Name == name })
	if at < 0 {
		return nil
	}
	return &o.Components[at]
}

// healthOf returns the condition ResourcesHealthy, which is empty if it is outdated.
func healthOf(mr *resourcesv1alpha1.ManagedResource) resourcesv1alpha1.Condition {
	if mr.Status.ObservedGeneration != mr.Generation {
		return resourcesv1alpha1.Condition{}
	}
	return resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesHealthy)
}
