package spreadconstraints

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// hashLabel distinguishes the Pods of a ReplicaSet from those of other templates of its Deployment.
const hashLabel = appsv1.DefaultDeploymentUniqueLabelKey

// countSameTemplate adds the hash of the Pod's template to the selectors of its spread constraints. It does nothing if
// the Pod has no hash.
func countSameTemplate(pod *corev1.Pod) {
	hash, found := pod.Labels[hashLabel]
	if !found {
		return
	}
	for i := range pod.Spec.TopologySpreadConstraints {
		constraint := &pod.Spec.TopologySpreadConstraints[i]
		if !selectsHash(constraint.LabelSelector) {
			selectHash(constraint, hash)
		}
	}
}

// selectsHash reports whether a selector already matches Pods by their hash.
func selectsHash(selector *metav1.LabelSelector) bool {
	if selector == nil {
		return false
	}
	if _, found := selector.MatchLabels[hashLabel]; found {
		return true
	}
	return slices.ContainsFunc(selector.MatchExpressions, func(e metav1.LabelSelectorRequirement) bool {
		return e.Key == hashLabel && e.Operator == metav1.LabelSelectorOpIn
	})
}

func selectHash(constraint *corev1.TopologySpreadConstraint, hash string) {
	if constraint.LabelSelector == nil {
		constraint.LabelSelector = &metav1.LabelSelector{}
	}
	metav1.AddLabelToSelector(constraint.LabelSelector, hashLabel, hash)
	// The API server rejects a key that is in both.
	constraint.MatchLabelKeys = slices.DeleteFunc(constraint.MatchLabelKeys, func(key string) bool { return key == hashLabel })
}
