package parts

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/references"
)

// PriorityClasses of Kubernetes.
const (
	PriorityClusterCritical = "system-cluster-critical"
	PriorityNodeCritical    = "system-node-critical"
)

// SystemComponent adds the labels of what runs in a shoot cluster for its own sake. Users' clean-up keeps objects with these labels.
func SystemComponent(labels map[string]string) map[string]string {
	return Merge(labels, map[string]string{constants.LabelGardenRole: constants.RoleSystemComponent, "origin": "gardener"})
}

// NodeCritical adds the label of Pods that must be ready before others may run on a new node.
func NodeCritical(labels map[string]string) map[string]string {
	return Merge(labels, map[string]string{constants.LabelNodeCriticalComponent: "true"})
}

// EverywhereTolerations are the tolerations of Pods that run on all nodes, whatever their taints.
func EverywhereTolerations() []corev1.Toleration {
	return []corev1.Toleration{
		{Effect: corev1.TaintEffectNoSchedule, Operator: corev1.TolerationOpExists},
		{Effect: corev1.TaintEffectNoExecute, Operator: corev1.TolerationOpExists},
	}
}

// CriticalTolerations are the tolerations of critical Pods that do not run on all nodes.
func CriticalTolerations() []corev1.Toleration {
	return []corev1.Toleration{{Key: "CriticalAddonsOnly", Operator: corev1.TolerationOpExists}}
}

// ServerHost returns the environment with which a Pod in a shoot reaches the API server by its name outside of the cluster, also if no
// proxy serves the Service kubernetes yet. It is empty for an empty host.
func ServerHost(host string) []corev1.EnvVar {
	if host == "" {
		return nil
	}
	return []corev1.EnvVar{{Name: "KUBERNETES_SERVICE_HOST", Value: host}}
}

// HostPath returns a volume with a directory or file of the node. kind may be empty.
func HostPath(name, path string, kind corev1.HostPathType) corev1.Volume {
	source := &corev1.HostPathVolumeSource{Path: path}
	if kind != "" {
		source.Type = ptr.To(kind)
	}
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{HostPath: source}}
}

// Daemon is a DaemonSet in the namespace kube-system of a shoot.
type Daemon struct {
	Name string
	// Selector selects the Pods. It is immutable.
	Selector map[string]string
	// PodLabels are additional labels of the Pods.
	PodLabels     map[string]string
	PriorityClass string
	// ServiceAccount whose token Kubernetes mounts; empty for none.
	ServiceAccount string
	// NodeSelector selects the nodes; nil for all.
	NodeSelector map[string]string
	HostNetwork  bool
	DNSPolicy    corev1.DNSPolicy
	// InitContainers and Containers have their own security contexts.
	InitContainers, Containers []corev1.Container
	Volumes                    []corev1.Volume
}

// DaemonSet returns the DaemonSet, annotated with the ConfigMaps and Secrets that it uses. Its Pods run on nodes with any taint.
func (d Daemon) DaemonSet() (*appsv1.DaemonSet, error) {
	daemon := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: d.Name, Labels: SystemComponent(d.Selector)},
		Spec: appsv1.DaemonSetSpec{
			RevisionHistoryLimit: ptr.To[int32](revisions),
			Selector:             &metav1.LabelSelector{MatchLabels: maps.Clone(d.Selector)},
			UpdateStrategy:       appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: SystemComponent(Merge(d.Selector, d.PodLabels))},
				Spec: corev1.PodSpec{
					PriorityClassName: d.PriorityClass, ServiceAccountName: d.ServiceAccount,
					AutomountServiceAccountToken: ptr.To(d.ServiceAccount != ""), NodeSelector: d.NodeSelector,
					HostNetwork: d.HostNetwork, DNSPolicy: d.DNSPolicy, Tolerations: EverywhereTolerations(),
					SecurityContext: &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
					InitContainers:  finished(d.InitContainers), Containers: finished(d.Containers), Volumes: d.Volumes,
				},
			},
		},
	}
	return daemon, references.InjectAnnotations(daemon)
}

// finished sets what all containers have.
func finished(containers []corev1.Container) []corev1.Container {
	for i := range containers {
		containers[i].ImagePullPolicy = corev1.PullIfNotPresent
		containers[i].TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
	}
	return containers
}

// DaemonAutoscaler returns a VerticalPodAutoscaler for a DaemonSet in the namespace kube-system. It scales the named container only.
func DaemonAutoscaler(name, daemon, container, minMemory string) *unstructured.Unstructured {
	policy := map[string]any{"containerName": container, "controlledValues": "RequestsOnly"}
	if minMemory != "" {
		policy["minAllowed"] = map[string]any{"memory": minMemory}
	}
	target := map[string]any{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": daemon}
	return AutoscalerOf(metav1.NamespaceSystem, name, target, policy, map[string]any{"containerName": "*", "mode": "Off"})
}

// SystemBudget is Budget with the labels of system components.
func SystemBudget(deployment *appsv1.Deployment) *policyv1.PodDisruptionBudget {
	budget := Budget(deployment)
	budget.Labels = SystemComponent(budget.Labels)
	return budget
}

// SystemService returns a Service of a system component in the namespace kube-system. Without a cluster IP it is headless.
func SystemService(name string, selector map[string]string, headless bool, ports ...corev1.ServicePort) *corev1.Service {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: name, Labels: SystemComponent(selector)},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Selector: maps.Clone(selector), Ports: ports},
	}
	if headless {
		service.Spec.ClusterIP = corev1.ClusterIPNone
	}
	return service
}

// TCPPort returns a port of a Service.
func TCPPort(name string, port, target int32) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Port: port, TargetPort: intstr.FromInt32(target), Protocol: corev1.ProtocolTCP}
}

// HTTPProbe returns a probe of a path on a port by its number.
func HTTPProbe(path string, port int32, scheme corev1.URIScheme) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt32(port), Scheme: scheme}},
		PeriodSeconds: 10, TimeoutSeconds: 5, FailureThreshold: 3, SuccessThreshold: 1,
	}
}
