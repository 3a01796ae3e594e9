// Package network connects the Pods of a Shoot. An agent on each node writes a CNI configuration with a bridge for the
// node's Pod range, maintains routes to the Pods of other nodes, and enforces NetworkPolicies.
package network

import (
	"context"
	"fmt"
	"net/netip"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	providerlocalv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/providerlocal/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/extension"
	"github.com/trellis-k8s/trellis/pkg/extension/bundles"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/provider/local"
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
	bundle.Objects = objects(object.Spec.PodCIDR, image, config == nil || ptr.Deref(config.NetworkPolicies, true))
	object.Status.IPFamilies = []extensionsv1alpha1.IPFamily{extensionsv1alpha1.IPFamilyIPv4}
	return flow.Plan{Bundles: []flow.Bundle{bundle}}, nil
}

// objects returns the agent and its RBAC objects.
func objects(pods, image string, policies bool) []client.Object {
	namespaced := metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: agentName}
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes", "pods", "namespaces"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{"networking.k8s.io"}, Resources: []string{"networkpolicies"}, Verbs: []string{"get", "list", "watch"}},
	}
	return []client.Object{
		&corev1.ServiceAccount{ObjectMeta: namespaced, AutomountServiceAccountToken: ptr.To(false)},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: roleName}, Rules: rules},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: roleName},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: roleName},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: agentName}},
		},
		daemonSet(namespaced, pods, image, policies),
	}
}

// daemonSet returns the DaemonSet of the agents.
func daemonSet(meta metav1.ObjectMeta, pods, image string, policies bool) *appsv1.DaemonSet {
	labels := map[string]string{"app": agentName}
	meta.Labels = labels
	container := corev1.Container{
		Name: "agent", Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
		Args: []string{
			"--node=$(NODE_NAME)", "--pod-network=" + configurations, "--cluster-pods=" + pods, fmt.Sprintf("--network-policies=%t", policies),
		},
		Env: []corev1.EnvVar{
			{Name: "NODE_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}},
		},
		// The agent changes routes and nftables of the node.
		SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(true)},
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi"),
		}},
		VolumeMounts: []corev1.VolumeMount{{Name: "configurations", MountPath: configurations}},
	}
	return &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels}, RevisionHistoryLimit: ptr.To[int32](2),
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{
				ServiceAccountName: agentName, AutomountServiceAccountToken: ptr.To(true), HostNetwork: true,
				PriorityClassName: "system-node-critical", Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
				Containers: []corev1.Container{container},
				Volumes: []corev1.Volume{{Name: "configurations", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{
					Path: configurations, Type: ptr.To(corev1.HostPathDirectoryOrCreate),
				}}}},
			},
		},
	}}
}
