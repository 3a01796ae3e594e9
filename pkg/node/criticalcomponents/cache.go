package criticalcomponents

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/cachetransform"
)

// CacheOptions returns the options of the cache for Reconciler.Components. The cache holds DaemonSets and Pods with the
// label in the given namespaces (in all if there are none), reduced to the fields that decisions need. Do not use the
// cache for other purposes, which may need more fields.
func CacheOptions(namespaces []string) cache.Options {
	critical := labels.SelectorFromSet(labels.Set{Label: LabelValue})
	selected := map[string]cache.Config{}
	for _, namespace := range namespaces {
		selected[namespace] = cache.Config{}
	}
	return cache.Options{ByObject: map[client.Object]cache.ByObject{
		&appsv1.DaemonSet{}: {Label: critical, Namespaces: selected, Transform: reduceObject},
		&corev1.Pod{}:       {Label: critical, Namespaces: selected, Transform: reduceObject},
	}}
}

// CSINodeCacheOptions returns the options of the cache for Reconciler.CSINodes.
func CSINodeCacheOptions() cache.Options {
	return cache.Options{ByObject: map[client.Object]cache.ByObject{&storagev1.CSINode{}: {Transform: reduceObject}}}
}

// reduceObject returns a copy with the fields that decisions need. Other fields are large or change too often.
func reduceObject(obj any) (any, error) {
	switch obj := obj.(type) {
	case *appsv1.DaemonSet:
		return reduceDaemonSet(obj), nil
	case *corev1.Pod:
		return reducePod(obj), nil
	case *storagev1.CSINode:
		return reduceCSINode(obj), nil
	default:
		return obj, nil
	}
}

func reduceDaemonSet(daemonSet *appsv1.DaemonSet) *appsv1.DaemonSet {
	reduced := &appsv1.DaemonSet{ObjectMeta: cachetransform.Meta(daemonSet)}
	template := &daemonSet.Spec.Template
	reduced.Spec.Template.Labels = cachetransform.KeepKeys(template.Labels, Label)
	reduced.Spec.Template.Spec = corev1.PodSpec{
		NodeName: template.Spec.NodeName, NodeSelector: template.Spec.NodeSelector, Tolerations: template.Spec.Tolerations,
	}
	if affinity := template.Spec.Affinity; affinity != nil {
		reduced.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: affinity.NodeAffinity}
	}
	return reduced
}

func reducePod(pod *corev1.Pod) *corev1.Pod {
	reduced := &corev1.Pod{
		ObjectMeta: cachetransform.Meta(pod),
		Spec:       corev1.PodSpec{NodeName: pod.Spec.NodeName},
		Status:     corev1.PodStatus{Phase: pod.Status.Phase},
	}
	reduced.Annotations = cachetransform.FilterKeys(pod.Annotations,
		func(key string) bool { return strings.HasPrefix(key, AnnotationPrefixCSIDriver) })
	if owner := metav1.GetControllerOf(pod); owner != nil {
		reduced.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			reduced.Status.Conditions = []corev1.PodCondition{{Type: condition.Type, Status: condition.Status}}
		}
	}
	return reduced
}

func reduceCSINode(csiNode *storagev1.CSINode) *storagev1.CSINode {
	reduced := &storagev1.CSINode{ObjectMeta: cachetransform.Meta(csiNode)}
	for _, driver := range csiNode.Spec.Drivers {
		reduced.Spec.Drivers = append(reduced.Spec.Drivers, storagev1.CSINodeDriver{Name: driver.Name})
	}
	return reduced
}
