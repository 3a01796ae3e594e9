// Package machinecontrollermanager contains the machine-controller-manager of a shoot, which makes machines of an infrastructure from
// objects in the control plane. The extension for the infrastructure adds the driver to its Pods by a webhook. Names and settings are the
// same as in Gardener.
package machinecontrollermanager

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/internal/parts"
	"github.com/trellis-k8s/trellis/pkg/netpol"
)

// Image is the name of the image.
const Image = "machine-controller-manager"

// Name is the name of the Deployment, its Service and its account in the shoot.
const Name = "machine-controller-manager"

const (
	port = 10258
	// portDriver is that of the driver, which the extension for the infrastructure adds.
	portDriver = 10259
	group      = "machine.sapcloud.io"
)

// Values are the inputs of the component.
type Values struct {
	// Namespace of the control plane.
	Namespace string
	// Image is the reference of the image named by the constant Image.
	Image string
	// Replicas is 0 while the shoot is hibernated. With PreserveReplicas it applies only on creation, and others may change it.
	Replicas         int32
	PreserveReplicas bool
	// Kubeconfig is the Secret of the config generic-token-kubeconfig.
	Kubeconfig string
	// VerticalPodAutoscaler adds a VerticalPodAutoscaler. The seed must define the kind.
	VerticalPodAutoscaler bool
}

var selector = parts.ControlPlane(Name)

// Selector returns the labels that select the Pods of the component.
func Selector() map[string]string { return maps.Clone(selector) }

// AccessSecret returns the Secret with the token of the component. It must exist before the Deployment that mounts it.
func AccessSecret(namespace string) *corev1.Secret { return parts.AccessSecret(namespace, Name) }

// Objects returns the objects in the seed.
func Objects(values Values) ([]client.Object, error) {
	deployment, err := deployment(values)
	if err != nil {
		return nil, err
	}
	if values.PreserveReplicas {
		metav1.SetMetaDataAnnotation(&deployment.ObjectMeta, resourcesv1alpha1.AnnotationPreserveReplicas, "true")
	}
	objects := parts.ProgramWithRights(deployment, service(values.Namespace), selector, rules())
	if values.VerticalPodAutoscaler {
		autoscaler := parts.NewAutoscaler(values.Namespace, Name+"-vpa", Name,
			map[string]any{"containerName": Name, "controlledValues": "RequestsOnly"}, map[string]any{"containerName": "*", "mode": "Off"})
		autoscaler.SetLabels(map[string]string{constants.LabelMutatedByControlPlaneWebhook: "true"})
		objects = append(objects, autoscaler)
	}
	return objects, nil
}

// rules are the permissions in the namespace of the control plane.
func rules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		parts.Rule(group, MachineResources(), "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"),
		parts.Rule("", []string{"configmaps", "secrets"}, "get", "list", "watch", "update", "patch"),
		{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch", "update"}},
		parts.Rule("coordination.k8s.io", []string{"leases"}, "get", "list", "watch", "create", "update"),
	}
}

// MachineResources are the resources that describe machines, with their subresources.
func MachineResources() []string {
	return []string{
		"machineclasses", "machineclasses/status", "machinedeployments", "machinedeployments/scale", "machinedeployments/status",
		"machines", "machines/status", "machinesets", "machinesets/scale", "machinesets/status",
	}
}

func service(namespace string) *corev1.Service {
	return parts.MetricsService(namespace, Name, selector,
		parts.TCPPort("metrics", port, port), parts.TCPPort("providermetrics", portDriver, portDriver))
}

func deployment(values Values) (*appsv1.Deployment, error) {
	access, mount := parts.ShootAccess(values.Kubeconfig, parts.AccessSecretName(Name))
	liveness := parts.HTTPProbe("/healthz", port, corev1.URISchemeHTTP)
	liveness.InitialDelaySeconds = 30
	return parts.Workload{
		Namespace: values.Namespace, Name: Name, Selector: selector,
		Labels: map[string]string{
			constants.LabelGardenRole: constants.RoleControlPlane, constants.LabelMutatedByControlPlaneWebhook: "true",
		},
		PodLabels: map[string]string{
			constants.LabelGardenRole:                      constants.RoleControlPlane,
			constants.LabelMaintenanceRestart:              "true",
			constants.LabelNetworkPolicyToDNS:              constants.NetworkPolicyAllowed,
			constants.LabelNetworkPolicyToPublicNetworks:   constants.NetworkPolicyAllowed,
			constants.LabelNetworkPolicyToPrivateNetworks:  constants.NetworkPolicyAllowed,
			constants.LabelNetworkPolicyToRuntimeAPIServer: constants.NetworkPolicyAllowed,
			netpol.LabelPrefix + "kube-apiserver-tcp-443":  netpol.LabelValue,
		},
		Replicas: values.Replicas, PriorityClass: constants.PriorityClassSystem300, ServiceAccount: Name, MountsToken: true,
		Volumes: []corev1.Volume{access},
		Container: corev1.Container{
			Name: Name, Image: values.Image, Command: []string{
				"./machine-controller-manager", "--control-kubeconfig=inClusterConfig", "--target-kubeconfig=" + parts.ShootKubeconfig,
				"--namespace=" + values.Namespace, "--port=10258", "--safety-up=2", "--safety-down=1", "--machine-safety-overshooting-period=1m",
				"--concurrent-syncs=30", "--kube-api-qps=150", "--kube-api-burst=200", "--v=3",
			},
			Ports:         []corev1.ContainerPort{{Name: "metrics", ContainerPort: port, Protocol: corev1.ProtocolTCP}},
			LivenessProbe: liveness, Resources: corev1.ResourceRequirements{Requests: parts.Requests("5m", "20M")},
			VolumeMounts: []corev1.VolumeMount{mount},
		},
	}.Deployment()
}

// ShootObjects returns the permissions of the component and of the driver in the shoot: to drain nodes, and to give new machines tokens
// with which they join.
func ShootObjects() []client.Object {
	account := parts.Account{Namespace: metav1.NamespaceSystem, Name: Name}
	objects := parts.ClusterRights("system:machine-controller-manager-runtime", nil, shootRules(), account)
	return append(objects, parts.Rights(metav1.NamespaceSystem, Name, nil, []rbacv1.PolicyRule{
		parts.Rule("", []string{"secrets"}, "get", "list", "watch", "create", "delete", "update", "patch"),
	}, account)...)
}

func shootRules() []rbacv1.PolicyRule {
	read := []string{"get", "list", "watch"}
	return []rbacv1.PolicyRule{
		{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch", "update"}},
		parts.Rule("", []string{"nodes"}, "get", "list", "watch", "create", "update", "patch", "delete"),
		parts.Rule("", []string{"nodes/status"}, "update", "patch"),
		parts.Rule("", []string{"persistentvolumeclaims", "persistentvolumes", "replicationcontrollers"}, read...),
		parts.Rule("", []string{"pods"}, "get", "list", "watch", "delete"),
		parts.Rule("", []string{"pods/eviction"}, "create"),
		parts.Rule("apps", []string{"daemonsets", "replicasets", "statefulsets"}, read...),
		parts.Rule("policy", []string{"poddisruptionbudgets"}, read...),
		parts.Rule("storage.k8s.io", []string{"volumeattachments"}, "get", "list", "watch", "delete"),
	}
}
