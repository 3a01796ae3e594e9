// Package parts builds objects that many components have in common.
package parts

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/references"
)

// unprivileged is the default user and group of components.
const unprivileged = 65532

// revisions is the number of old ReplicaSets that a Deployment keeps.
const revisions = 2

// Workload is a Deployment whose Pods have one container.
type Workload struct {
	Namespace, Name string
	// Selector selects the Pods. It is immutable.
	Selector map[string]string
	// Labels are additional labels of the Deployment, PodLabels of its Pods.
	Labels, PodLabels map[string]string
	Replicas          int32
	PriorityClass     string
	ServiceAccount    string
	// MountsToken lets Kubernetes mount the token. Otherwise a webhook of the resource-manager mounts a token with a
	// shorter validity.
	MountsToken bool
	// Container of the Pods. Its security context is set by Deployment.
	Container corev1.Container
	Volumes   []corev1.Volume
	// Spread contains the topology spread constraints of the Pods.
	Spread []corev1.TopologySpreadConstraint
	// Strategy of rollouts; empty for the default of Kubernetes.
	Strategy appsv1.DeploymentStrategy
}

// Deployment returns the Deployment, annotated with the ConfigMaps and Secrets that it uses.
func (w Workload) Deployment() (*appsv1.Deployment, error) {
	container := w.Container
	container.ImagePullPolicy = corev1.PullIfNotPresent
	// The status of a Pod that crashes contains the end of its log.
	container.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
	container.SecurityContext = &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name, Labels: Merge(w.Selector, w.Labels)},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(w.Replicas), RevisionHistoryLimit: ptr.To[int32](revisions),
			Selector: &metav1.LabelSelector{MatchLabels: maps.Clone(w.Selector)}, Strategy: w.Strategy,
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: Merge(w.Selector, w.PodLabels)},
				Spec: corev1.PodSpec{
					PriorityClassName: w.PriorityClass, ServiceAccountName: w.ServiceAccount,
					AutomountServiceAccountToken: automount(w), SecurityContext: podSecurity(),
					Containers: []corev1.Container{container}, Volumes: w.Volumes, TopologySpreadConstraints: w.Spread,
				},
			},
		},
	}
	if err := references.InjectAnnotations(deployment); err != nil {
		return nil, err
	}
	return deployment, nil
}

// automount returns nil for Pods that get their token from the webhook, because the webhook skips Pods that set it to
// false.
func automount(w Workload) *bool {
	switch {
	case w.MountsToken:
		return ptr.To(true)
	case w.ServiceAccount == "":
		return ptr.To(false)
	}
	return nil
}

func podSecurity() *corev1.PodSecurityContext {
	return &corev1.PodSecurityContext{
		RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](unprivileged), RunAsGroup: ptr.To[int64](unprivileged),
		FSGroup: ptr.To[int64](unprivileged), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// Budget returns a PodDisruptionBudget that allows the eviction of one Pod of a Deployment at a time, and of Pods that
// are not ready at any time.
func Budget(deployment *appsv1.Deployment) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: deployment.Namespace, Name: deployment.Name, Labels: maps.Clone(deployment.Spec.Selector.MatchLabels),
		},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: ptr.To(intstr.FromInt32(1)), UnhealthyPodEvictionPolicy: ptr.To(policyv1.AlwaysAllow),
			Selector: deployment.Spec.Selector.DeepCopy(),
		},
	}
}

// Merge returns the entries of all maps. Later maps take precedence.
func Merge(all ...map[string]string) map[string]string {
	merged := map[string]string{}
	for _, one := range all {
		maps.Copy(merged, one)
	}
	return merged
}

// Probe returns an HTTP probe of a path on a port.
func Probe(path, port string) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: path, Port: intstr.FromString(port), Scheme: corev1.URISchemeHTTP,
		}},
		TimeoutSeconds: 5,
	}
}

// Startup returns a startup probe that detects within a second that a program is ready, by the handler of its readiness
// probe. A start that takes longer than five minutes has failed.
func Startup(readiness *corev1.Probe) *corev1.Probe {
	startup := readiness.DeepCopy()
	startup.PeriodSeconds, startup.FailureThreshold = 1, 300
	return startup
}

// SecretVolume returns a volume with the data of a Secret, readable by the group of the Pod.
func SecretVolume(name, secret string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: secret, DefaultMode: ptr.To[int32](0o440)},
	}}
}

// ConfigVolume returns a volume with the data of a ConfigMap.
func ConfigVolume(name, configMap string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: configMap}},
	}}
}

// Mount returns a read-only mount of a volume.
func Mount(volume, path string) corev1.VolumeMount {
	return corev1.VolumeMount{Name: volume, MountPath: path, ReadOnly: true}
}

// Requests returns resource requests. The arguments must be valid quantities.
func Requests(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

// Spread returns constraints that distribute the Pods of a Deployment over nodes and zones if possible.
func Spread(selector map[string]string) []corev1.TopologySpreadConstraint {
	var constraints []corev1.TopologySpreadConstraint
	for _, key := range []string{corev1.LabelHostname, corev1.LabelTopologyZone} {
		constraints = append(constraints, corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector:  &metav1.LabelSelector{MatchLabels: maps.Clone(selector)},
			MatchLabelKeys: []string{appsv1.DefaultDeploymentUniqueLabelKey},
		})
	}
	return constraints
}
