// Package daemon returns the objects of programs that run on each node of a Shoot.
package daemon

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Daemon is a program that runs on each node of a Shoot, in the network of the node.
type Daemon struct {
	// Name is the name of the DaemonSet and of its ServiceAccount in the namespace kube-system.
	Name string
	// Role is the name of the ClusterRole and its binding, Rules the rights of the program.
	Role  string
	Rules []rbacv1.PolicyRule
	// Container is the program. It gets the variable NODE_NAME, and the directories of Directories.
	Container corev1.Container
	// Directories are the directories of the node that the program uses under the same path, by the names of their volumes.
	Directories map[string]string
}

// Objects returns the DaemonSet, its ServiceAccount and its rights.
func (d Daemon) Objects() []client.Object {
	meta := metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: d.Name}
	return []client.Object{
		&corev1.ServiceAccount{ObjectMeta: meta, AutomountServiceAccountToken: ptr.To(false)},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: d.Role}, Rules: d.Rules},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: d.Role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: d.Role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: d.Name}},
		},
		d.daemonSet(meta),
	}
}

func (d Daemon) daemonSet(meta metav1.ObjectMeta) *appsv1.DaemonSet {
	labels := map[string]string{"app": d.Name}
	meta.Labels = labels
	container := d.Container
	container.ImagePullPolicy = corev1.PullIfNotPresent
	container.Env = []corev1.EnvVar{{Name: "NODE_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}}}
	container.Resources = corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi"),
	}}
	spec := corev1.PodSpec{
		ServiceAccountName: d.Name, AutomountServiceAccountToken: ptr.To(true), HostNetwork: true,
		PriorityClassName: "system-node-critical", Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
	}
	for _, name := range slices.Sorted(maps.Keys(d.Directories)) {
		path := d.Directories[name]
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: path})
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: path, Type: ptr.To(corev1.HostPathDirectoryOrCreate)},
		}})
	}
	spec.Containers = []corev1.Container{container}
	return &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels}, RevisionHistoryLimit: ptr.To[int32](2),
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
	}}
}
