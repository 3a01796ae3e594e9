// Package networkpolicy emits the general network policies of the namespaces of a seed or of the runtime cluster of a garden, with one
// ManagedResource per namespace. In a cluster that is both, the operator does, and gardenlet hands them over. The flow of the Seed manages those
// of the namespace garden.
package networkpolicy

import (
	"fmt"
	"net/netip"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/networkpolicies"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/inventory"
)

const (
	// FlowName is the name of the flow.
	FlowName = inventory.NetworkPolicies
	// bundlePrefix is the prefix of the names of bundles. The name of the namespace follows.
	bundlePrefix = inventory.NetworkPolicies + "-"
	// seedClass is the class of ManagedResources of the seed's resource-manager.
	seedClass = "seed"
)

// Inputs are the inputs of the plan.
type Inputs struct {
	// Namespace is the namespace of the ManagedResources.
	Namespace string
	// Networks are the networks of the cluster.
	Networks networkpolicies.Networks
	// Deleting is set if the Seed or Garden is being deleted.
	Deleting bool
	// Released is set if another program manages the policies. All are handed over to it.
	Released bool
	// OfGarden is set if they are those of a garden: also the policies of the namespace garden, and none are kept for Shoots at the end.
	OfGarden bool
	// AdditionalSelectors select additional namespaces that get policies.
	AdditionalSelectors []metav1.LabelSelector
	// APIServers are the addresses of the seed's API server, or empty if they are not known.
	APIServers []netip.AddrPort
	// Namespaces are all namespaces that are not being deleted.
	Namespaces []Namespace
	// Emitted are the existing bundles.
	Emitted []flow.Key
}

// Namespace is a namespace of the seed.
type Namespace struct {
	Name   string
	Labels map[string]string
	// Shoot is the Shoot whose control plane is in the namespace. It is nil if it is not known, or if the namespace has another purpose.
	Shoot *gardencorev1beta1.Shoot
}

// isShoot reports whether the namespace has the control plane of a Shoot.
func (n Namespace) isShoot() bool { return n.Labels[constants.LabelGardenRole] == constants.RoleShoot }

// Plan returns a bundle for each namespace that gets policies. It deletes the bundles of deleted namespaces, and all
// bundles when the Seed is being deleted and no longer hosts control planes of Shoots.
func Plan(in Inputs) (flow.Plan, error) {
	plan := flow.Plan{Deleting: in.Deleting}
	if in.Released {
		for _, key := range in.Emitted {
			plan.Tombstones = append(plan.Tombstones, flow.Tombstone{Key: key, Release: flow.ReleaseBundle})
		}
		return plan, nil
	}
	kept := map[flow.Key]bool{}
	for _, namespace := range in.Namespaces {
		wanted, err := in.wants(namespace)
		if err != nil {
			return flow.Plan{}, err
		}
		if !wanted {
			continue
		}
		key := in.key(namespace.Name)
		kept[key] = true
		if reason := in.unknown(namespace); reason != "" {
			plan.Waits = append(plan.Waits, flow.Wait{Name: namespace.Name + "-known", Reason: reason, Holds: []flow.Key{key}})
			continue
		}
		bundle, err := in.bundle(key, namespace)
		if err != nil {
			return flow.Plan{}, fmt.Errorf("network policies of namespace %s: %w", namespace.Name, err)
		}
		plan.Bundles = append(plan.Bundles, bundle)
	}
	for _, key := range in.Emitted {
		if !kept[key] {
			plan.Tombstones = append(plan.Tombstones, flow.Tombstone{Key: key})
		}
	}
	return plan, nil
}

// wants reports whether a namespace gets policies.
func (in Inputs) wants(namespace Namespace) (bool, error) {
	handled, err := networkpolicies.Handles(namespace.Name, namespace.Labels, in.AdditionalSelectors)
	hosts := !in.OfGarden && slices.ContainsFunc(in.Namespaces, Namespace.isShoot)
	ofFlow := namespace.Name == constants.GardenNamespace && !in.OfGarden
	return handled && !ofFlow && (!in.Deleting || hosts), err
}

// key returns the key of the bundle of a namespace. That of the namespace garden is the one that the flow of a Seed has, too.
func (in Inputs) key(namespace string) flow.Key {
	if namespace == constants.GardenNamespace {
		return flow.Key{Namespace: in.Namespace, Name: inventory.NetworkPolicies}
	}
	return flow.Key{Namespace: in.Namespace, Name: bundlePrefix + namespace}
}

// unknown names the input for a namespace that is not known yet, or returns an empty string.
func (in Inputs) unknown(namespace Namespace) string {
	switch {
	case len(in.APIServers) == 0:
		return "the addresses of the seed's API server are not known"
	case namespace.isShoot() && namespace.Shoot == nil:
		return "the Cluster of the Shoot, which contains its networks, does not exist yet"
	}
	return ""
}

// bundle returns the bundle with the policies of a namespace.
func (in Inputs) bundle(key flow.Key, namespace Namespace) (flow.Bundle, error) {
	values := networkpolicies.Values{
		Namespace: namespace.Name, Labels: namespace.Labels, AdditionalSelectors: in.AdditionalSelectors,
		Networks: in.Networks, APIServers: in.APIServers,
	}
	if namespace.Shoot != nil {
		values.ShootNetworks = networkpolicies.ShootNetworks(namespace.Shoot)
	}
	objects, err := networkpolicies.Objects(values)
	return flow.Bundle{
		Key: key, Objects: objects, Spec: resourcesv1alpha1.ManagedResourceSpec{Class: ptr.To(seedClass)},
		Labels: map[string]string{constants.LabelGardenRole: constants.RoleSeedSystemComponent},
	}, err
}
