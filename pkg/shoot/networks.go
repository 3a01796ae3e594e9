package shoot

import (
	"context"
	"fmt"

	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// fillNetworks writes the network of nodes that the infrastructure has chosen into the specification of a Shoot that declares none. The change
// triggers the next pass.
func (p *pass) fillNetworks(ctx context.Context) error {
	nodes := p.in.chosenNodes()
	if nodes == "" || p.decision.stopped || p.in.Deleting {
		return nil
	}
	shoot := p.shoot.DeepCopy() // which remains as it is if the garden refuses the change
	if err := p.patch(ctx, shoot, func() { shoot.Spec.Networking.Nodes = &nodes }); err != nil {
		return fmt.Errorf("set spec.networking.nodes to the network %s of the infrastructure: %w", nodes, err)
	}
	p.Over = true
	return nil
}

// chosenNodes returns the network of nodes that the infrastructure has chosen, empty if the Shoot declares one.
func (in Inputs) chosenNodes() string {
	networking, infrastructure := in.Shoot.Spec.Networking, in.Machines.Infrastructure
	if !in.hasWorkers() || infrastructure == nil || networking == nil || ptr.Deref(networking.Nodes, "") != "" {
		return ""
	}
	return ptr.Deref(infrastructure.NodesCIDR, "")
}

// networks returns status.networking of a Shoot with workers: the networks that the cluster uses, once the infrastructure exists.
func (in Inputs) networks() *corev1beta1.NetworkingStatus {
	infrastructure := in.Machines.Infrastructure
	if infrastructure == nil {
		return in.Shoot.Status.Networking
	}
	status := &corev1beta1.NetworkingStatus{Pods: in.podNetworks(), Services: in.serviceNetworks(), EgressCIDRs: infrastructure.EgressCIDRs}
	if networking := in.Shoot.Spec.Networking; networking != nil && ptr.Deref(networking.Nodes, "") != "" {
		status.Nodes = []string{*networking.Nodes}
	} else if infrastructure.NodesCIDR != nil {
		status.Nodes = []string{*infrastructure.NodesCIDR}
	}
	return status
}
