// Package network connects the Pods of a Shoot. An agent on each node writes a CNI configuration with a bridge for the
// node's Pod range, maintains routes to the Pods of other nodes, and enforces NetworkPolicies.
package network

import (
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/utils/ptr"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	providerlocalv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/providerlocal/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/extension"
	"github.com/trellis-k8s/trellis/pkg/extension/bundles"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/provider/local"
	"github.com/trellis-k8s/trellis/pkg/provider/local/daemon"
)

// FlowName distinguishes the ManagedResources of Networks from others of the extension.
const FlowName = "network"

const (
	bundleName = "extension-networking-local"
	agentName  = "provider-local-network"
	roleName   = "extensions.gardener.cloud:" + local.Name + ":network"
	// configurations is the directory of CNI configurations on machines.
	configurations = "/etc/cni/net.d"
)

// New returns the actuator. image is the image of the agents.
func New(deployer *bundles.Deployer, image string) *bundles.Actuator[*extensionsv1alpha1.Network] {
	plan := func(_ context.Context, object *extensionsv1alpha1.Network, _ *extension.Cluster) (flow.Plan, error) {
		return Plan(object, image)
	}
	return bundles.NewActuator(deployer, FlowName, plan)
}

// Plan returns the bundle of a Network.
func Plan(object *extensionsv1alpha1.Network, image string) (flow.Plan, error) {
	config, err := providerlocalv1alpha1.Decode[providerlocalv1alpha1.NetworkConfig](object.Spec.ProviderConfig)
	if err != nil {
		return flow.Plan{}, extension.ConfigurationProblem(fmt.Errorf("decode spec.providerConfig: %w", err))
	}
	pods, err := netip.ParsePrefix(object.Spec.PodCIDR)
	if err != nil || !pods.Addr().Is4() || len(object.Spec.IPFamilies) > 1 {
		return flow.Plan{}, extension.ConfigurationProblem(fmt.Errorf("spec.podCIDR %q, spec.ipFamilies %v: this network only supports IPv4",
			object.Spec.PodCIDR, object.Spec.IPFamilies))
	}
	bundle := bundles.Shoot(object.Namespace, bundleName)
	bundle.Objects = agent(object.Spec.PodCIDR, image, config == nil || ptr.Deref(config.NetworkPolicies, true)).Objects()
	object.Status.IPFamilies = []extensionsv1alpha1.IPFamily{extensionsv1alpha1.IPFamilyIPv4}
	return flow.Plan{Bundles: []flow.Bundle{bundle}}, nil
}

// agent returns the agent of the network.
func agent(pods, image string, policies bool) daemon.Daemon {
	return daemon.Daemon{
		Name: agentName, Role: roleName,
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"nodes", "pods", "namespaces"}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{"networking.k8s.io"}, Resources: []string{"networkpolicies"}, Verbs: []string{"get", "list", "watch"}},
		},
		Container: corev1.Container{
			Name: "agent", Image: image,
			Args: []string{
				"--node=$(NODE_NAME)", "--pod-network=" + configurations, "--cluster-pods=" + pods, fmt.Sprintf("--network-policies=%t", policies),
			},
			// The agent changes routes and nftables of the node.
			SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(true)},
		},
		Directories: map[string]string{"configurations": configurations},
	}
}
