// Package infrastructure deploys the environment of machines: a namespace in the seed for the machines and bastions of a
// Shoot, with network policies that only permit connections between them and to destinations that machines require.
package infrastructure

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	providerlocalv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/providerlocal/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/providerlocal/validation"
	"github.com/trellis-k8s/trellis/pkg/component/vpnseedserver"
	"github.com/trellis-k8s/trellis/pkg/extension"
	"github.com/trellis-k8s/trellis/pkg/extension/bundles"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/provider/local"
)

// FlowName distinguishes the ManagedResources of Infrastructures from others of the extension.
const FlowName = "infrastructure"

const (
	bundleName = "infrastructure"
	portSSH    = 22
	portDNS    = 53
	portServer = 443
)

// Actuator deploys the environment of machines.
type Actuator struct {
	*bundles.Actuator[*extensionsv1alpha1.Infrastructure]

	// Client writes ManagedResources. Uncached reads them.
	Client   client.Client
	Uncached client.Reader
}

var _ extension.ConfigValidator[*extensionsv1alpha1.Infrastructure] = &Actuator{}

// New returns the actuator.
func New(deployer *bundles.Deployer, c client.Client, uncached client.Reader, machines local.Machines) *Actuator {
	plan := func(_ context.Context, object *extensionsv1alpha1.Infrastructure, cluster *extension.Cluster) (flow.Plan, error) {
		return Plan(object, cluster, machines)
	}
	return &Actuator{Actuator: bundles.NewActuator(deployer, FlowName, plan), Client: c, Uncached: uncached}
}

// Migrate retains the namespace with the machines.
func (a *Actuator) Migrate(
	ctx context.Context, object *extensionsv1alpha1.Infrastructure, cluster *extension.Cluster,
) (extension.Result, error) {
	if err := local.KeepObjects(ctx, a.Client, a.Uncached, object); err != nil {
		return extension.Result{}, err
	}
	return a.Actuator.Migrate(ctx, object, cluster)
}

// Validate validates the configuration.
func (a *Actuator) Validate(_ context.Context, object *extensionsv1alpha1.Infrastructure, cluster *extension.Cluster) field.ErrorList {
	path := field.NewPath("spec", "providerConfig")
	config, err := providerlocalv1alpha1.Decode[providerlocalv1alpha1.InfrastructureConfig](object.Spec.ProviderConfig)
	if err != nil {
		return field.ErrorList{field.Invalid(path, "", err.Error())}
	}
	if config == nil {
		return nil
	}
	var pods, services string
	if cluster != nil && cluster.Shoot.Spec.Networking != nil {
		pods, services = ptr.Deref(cluster.Shoot.Spec.Networking.Pods, ""), ptr.Deref(cluster.Shoot.Spec.Networking.Services, "")
	}
	return validation.ValidateInfrastructureConfig(config, pods, services, path)
}

// Plan returns the bundle of an Infrastructure, and sets its networks in the status.
func Plan(object *extensionsv1alpha1.Infrastructure, cluster *extension.Cluster, machines local.Machines) (flow.Plan, error) {
	if cluster == nil {
		return flow.Plan{}, fmt.Errorf("the Cluster %s with the networks does not exist", object.Namespace)
	}
	config, err := providerlocalv1alpha1.Decode[providerlocalv1alpha1.InfrastructureConfig](object.Spec.ProviderConfig)
	if err != nil {
		return flow.Plan{}, extension.ConfigurationProblem(fmt.Errorf("decode spec.providerConfig: %w", err))
	}
	report(object, config, cluster)
	namespace := local.InfrastructureNamespace(object.Namespace)
	err = extension.SetProviderStatus(object, &providerlocalv1alpha1.InfrastructureStatus{
		TypeMeta: providerlocalv1alpha1.TypeMeta("InfrastructureStatus"), Namespace: namespace, Simulated: machines.Simulated,
	})
	if err != nil {
		return flow.Plan{}, err
	}
	bundle := bundles.Outside(machines.Namespace, object.Namespace, bundleName)
	bundle.Objects = Objects(namespace, object.Namespace)
	server := bundles.Seed(object.Namespace, bundleName+"-server")
	server.Objects = []client.Object{
		policyTo("kube-apiserver", map[string]string{"app": "kubernetes", "role": "apiserver"}, portServer, namespace, object.Namespace),
		policyTo(vpnseedserver.Name, map[string]string{"app": vpnseedserver.Name}, vpnseedserver.PortAgents, namespace, object.Namespace),
	}
	return flow.Plan{Bundles: []flow.Bundle{bundle, server}}, nil
}

// report sets the networks in the status: those that the Shoot declares. If it declares none for nodes, none is reported: machines then have
// addresses of the network of the seed's Pods, which a Shoot must not declare as its own.
func report(object *extensionsv1alpha1.Infrastructure, config *providerlocalv1alpha1.InfrastructureConfig, cluster *extension.Cluster) {
	networking := cluster.Shoot.Spec.Networking
	if networking == nil {
		networking = &gardencorev1beta1.Networking{}
	}
	nodes := networking.Nodes
	if config != nil && config.Networks != nil && config.Networks.Nodes != nil {
		nodes = config.Networks.Nodes
	}
	object.Status.NodesCIDR, object.Status.EgressCIDRs = nodes, list(nodes)
	if nodes == nil && cluster.Seed != nil {
		object.Status.EgressCIDRs = list(&cluster.Seed.Spec.Networks.Pods)
	}
	object.Status.Networking = &extensionsv1alpha1.InfrastructureStatusNetworking{
		Pods: list(networking.Pods), Nodes: list(nodes), Services: list(networking.Services),
	}
}

// list returns a list with the value, or nil if it is empty.
func list(value *string) []string {
	if value == nil || *value == "" {
		return nil
	}
	return []string{*value}
}

// policyTo returns the network policy that lets machines connect to Pods of their shoot's control plane, which run in the same cluster: the API
// server, and the servers of the tunnel, to which Pods on the machines connect.
func policyTo(name string, pods map[string]string, port int32, machines, technicalID string) *networkingv1.NetworkPolicy {
	tcp := corev1.ProtocolTCP
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: technicalID, Name: "provider-local-machines-to-" + name},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: pods},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{{
				From: []networkingv1.NetworkPolicyPeer{{
					NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: machines}},
					PodSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{local.LabelApp: local.AppMachine}},
				}},
				Ports: []networkingv1.NetworkPolicyPort{{Protocol: &tcp, Port: ptr.To(intstr.FromInt32(port))}},
			}},
		},
	}
}

// Objects returns the namespace for the machines of a Shoot, and its network policies.
func Objects(namespace, technicalID string) []client.Object {
	machines := metav1.LabelSelector{MatchLabels: map[string]string{local.LabelApp: local.AppMachine}}
	bastions := metav1.LabelSelector{MatchLabels: map[string]string{local.LabelApp: local.AppBastion}}
	controlPlane := metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: technicalID}}
	tcp, udp := corev1.ProtocolTCP, corev1.ProtocolUDP
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{
			local.LabelRole: local.RoleInfrastructure, "pod-security.kubernetes.io/enforce": "privileged",
		}}},
		&networkingv1.NetworkPolicy{ObjectMeta: meta("provider-local-deny-all"), Spec: networkingv1.NetworkPolicySpec{
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
		}},
		&networkingv1.NetworkPolicy{ObjectMeta: meta("provider-local-allow-machine-pods"), Spec: networkingv1.NetworkPolicySpec{
			PodSelector: machines, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{
				{From: []networkingv1.NetworkPolicyPeer{{PodSelector: &machines}, {NamespaceSelector: &controlPlane}}},
				{
					From:  []networkingv1.NetworkPolicyPeer{{PodSelector: &bastions}},
					Ports: []networkingv1.NetworkPolicyPort{{Protocol: &tcp, Port: ptr.To(intstr.FromInt32(portSSH))}},
				},
			},
			// Machines pull images from and connect to API servers at unknown addresses. Name servers are in the seed.
			Egress: []networkingv1.NetworkPolicyEgressRule{
				{To: []networkingv1.NetworkPolicyPeer{
					{IPBlock: &networkingv1.IPBlock{CIDR: "0.0.0.0/0"}}, {IPBlock: &networkingv1.IPBlock{CIDR: "::/0"}},
				}},
				{Ports: []networkingv1.NetworkPolicyPort{
					{Protocol: &udp, Port: ptr.To(intstr.FromInt32(portDNS))}, {Protocol: &tcp, Port: ptr.To(intstr.FromInt32(portDNS))},
				}},
			},
		}},
	}
}
