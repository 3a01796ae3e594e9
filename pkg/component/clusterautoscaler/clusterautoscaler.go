// Package clusterautoscaler contains cluster-autoscaler of a shoot: it adds machines to the worker pools when Pods do not fit, and removes
// machines that are not needed. It runs in the control plane, and changes the replicas of MachineDeployments there. Names and settings are
// the same as in Gardener.
package clusterautoscaler

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
	"github.com/trellis-k8s/trellis/pkg/netpol"
)

// Image is the name of the image.
const Image = "cluster-autoscaler"

// Name is the name of the Deployment, its Service and its account in the shoot.
const Name = "cluster-autoscaler"

const port = 8085

// Values are the inputs of the component.
type Values struct {
	// Namespace of the control plane.
	Namespace string
	// Image is the reference of the image named by the constant Image.
	Image string
	// Replicas is 0 while the shoot is hibernated.
	Replicas int32
	// Config is spec.kubernetes.clusterAutoscaler of the Shoot, with defaults.
	Config corev1beta1.ClusterAutoscaler
	// Deployments are the sets of machines that the extension for the infrastructure has reported, in its order.
	Deployments []extensionsv1alpha1.MachineDeployment
	// MaxNodes is the most nodes that the cluster may have; 0 for no limit.
	MaxNodes int64
	// Kubeconfig is the Secret of the config generic-token-kubeconfig.
	Kubeconfig string
	// VerticalPodAutoscaler adds a VerticalPodAutoscaler. The seed must define the kind.
	VerticalPodAutoscaler bool
}

var selector = parts.ControlPlane(Name)

// AccessSecret returns the Secret with the token of the component. It must exist before the Deployment that mounts it.
func AccessSecret(namespace string) *corev1.Secret { return parts.AccessSecret(namespace, Name) }

// Objects returns the objects in the seed.
func Objects(values Values) ([]client.Object, error) {
	deployment, err := deployment(values)
	if err != nil {
		return nil, err
	}
	objects := parts.ProgramWithRights(deployment, service(values.Namespace), selector, rules())
	if values.VerticalPodAutoscaler {
		policy := map[string]any{"containerName": Name, "controlledValues": "RequestsOnly"}
		if least := minimum(values.Config.Autoscaling); len(least) > 0 {
			policy["minAllowed"] = least
		}
		objects = append(objects, parts.NewAutoscaler(values.Namespace, Name+"-vpa", Name, policy, map[string]any{"containerName": "*", "mode": "Off"}))
	}
	return objects, nil
}

// minimum returns the least resources of the program itself.
func minimum(autoscaling *corev1beta1.ControlPlaneAutoscaling) map[string]any {
	least := map[string]any{}
	if autoscaling == nil {
		return least
	}
	for name, quantity := range autoscaling.MinAllowed {
		least[string(name)] = quantity.String()
	}
	return least
}

// rules are the permissions in the namespace of the control plane: to change the number of machines.
func rules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		parts.Rule("machine.sapcloud.io", []string{"machineclasses", "machinedeployments", "machines", "machinesets"}, "get", "list", "watch", "patch", "update"),
		parts.Rule("apps", []string{"deployments"}, "get", "list", "watch"),
	}
}

func service(namespace string) *corev1.Service {
	return parts.MetricsService(namespace, Name, selector, parts.TCPPort("metrics", port, port))
}

func deployment(values Values) (*appsv1.Deployment, error) {
	access, mount := parts.ShootAccess(values.Kubeconfig, parts.AccessSecretName(Name))
	return parts.Workload{
		Namespace: values.Namespace, Name: Name, Selector: selector,
		Labels: map[string]string{
			constants.LabelGardenRole: constants.RoleControlPlane, constants.LabelMutatedByControlPlaneWebhook: "true",
		},
		PodLabels: map[string]string{
			constants.LabelGardenRole:                      constants.RoleControlPlane,
			constants.LabelMaintenanceRestart:              "true",
			constants.LabelNetworkPolicyToDNS:              constants.NetworkPolicyAllowed,
			constants.LabelNetworkPolicyToRuntimeAPIServer: constants.NetworkPolicyAllowed,
			netpol.LabelPrefix + "kube-apiserver-tcp-443":  netpol.LabelValue,
		},
		Replicas: values.Replicas, PriorityClass: constants.PriorityClassSystem300, ServiceAccount: Name, MountsToken: true,
		Volumes: []corev1.Volume{access},
		Container: corev1.Container{
			Name: Name, Image: values.Image, Command: append([]string{"./cluster-autoscaler"}, flags(values)...),
			Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: port, Protocol: corev1.ProtocolTCP}},
			Env: []corev1.EnvVar{
				{Name: "CONTROL_NAMESPACE", Value: values.Namespace}, {Name: "TARGET_KUBECONFIG", Value: parts.ShootKubeconfig},
			},
			Resources: corev1.ResourceRequirements{Requests: parts.Requests("10m", "30Mi")}, VolumeMounts: []corev1.VolumeMount{mount},
		},
	}.Deployment()
}

// ShootObjects returns the objects in the shoot: the permissions of the component, and the priorities of the sets of machines, if any has one.
func ShootObjects(values Values) ([]client.Object, error) {
	account := parts.Account{Namespace: metav1.NamespaceSystem, Name: Name}
	objects := parts.ClusterRights("system:cluster-autoscaler-shoot", nil, shootRules(), account)
	leases := parts.Rule("coordination.k8s.io", []string{"leases"}, "get", "update")
	leases.ResourceNames = []string{Name}
	status := parts.Rule("", []string{"configmaps"}, "get", "update", "delete", "watch")
	status.ResourceNames = []string{"cluster-autoscaler-status", configMapPriorities}
	objects = append(objects, parts.Rights(metav1.NamespaceSystem, "system:cluster-autoscaler-shoot", nil, []rbacv1.PolicyRule{
		parts.Rule("coordination.k8s.io", []string{"leases"}, "create"), leases,
		parts.Rule("", []string{"configmaps"}, "create", "list", "watch"), status,
	}, account)...)
	priorities, err := priorities(values.Deployments)
	if err != nil {
		return nil, fmt.Errorf("encode the priorities of worker pools: %w", err)
	}
	if priorities != nil {
		objects = append(objects, priorities)
	}
	return objects, nil
}

// shootRules are the permissions in the shoot: to simulate the scheduler, and to drain nodes.
func shootRules() []rbacv1.PolicyRule {
	read := []string{"get", "list", "watch"}
	return []rbacv1.PolicyRule{
		{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch", "update"}},
		parts.Rule("", []string{"namespaces", "persistentvolumeclaims", "persistentvolumes", "pods", "replicationcontrollers", "services"}, read...),
		parts.Rule("", []string{"pods/eviction"}, "create"),
		parts.Rule("", []string{"pods/status"}, "update"),
		parts.Rule("", []string{"nodes"}, "get", "list", "watch", "update", "patch"),
		parts.Rule("apps", []string{"daemonsets", "replicasets", "statefulsets"}, read...),
		parts.Rule("batch", []string{"jobs", "cronjobs"}, read...),
		parts.Rule("policy", []string{"poddisruptionbudgets"}, read...),
		parts.Rule("storage.k8s.io", []string{"csidrivers", "csinodes", "csistoragecapacities", "storageclasses", "volumeattachments"}, read...),
		parts.Rule("resource.k8s.io", []string{"deviceclasses", "resourceclaims", "resourceslices"}, read...),
	}
}
