package systemcomponents

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
)

// taintOfDeletedNodes is the taint with which the cluster-autoscaler marks a node that it is about to remove.
const taintOfDeletedNodes = "ToBeDeletedByClusterAutoscaler"

// ofDaemonSet reports whether a DaemonSet controls the Pod. Such a Pod is bound to a specific node, which may be of any
// kind.
func ofDaemonSet(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	return owner != nil && owner.APIVersion == appsv1.SchemeGroupVersion.String() && owner.Kind == "DaemonSet"
}

// place merges nodeSelector into the node selector of a Pod, with precedence, and appends missing tolerations in their
// order.
func place(spec *corev1.PodSpec, nodeSelector map[string]string, tolerations ...[]corev1.Toleration) {
	if len(nodeSelector) > 0 && spec.NodeSelector == nil {
		spec.NodeSelector = map[string]string{}
	}
	maps.Copy(spec.NodeSelector, nodeSelector)
	present := map[identity]struct{}{}
	for _, toleration := range spec.Tolerations {
		present[identify(toleration)] = struct{}{}
	}
	for _, toleration := range slices.Concat(tolerations...) {
		if _, found := present[identify(toleration)]; !found {
			present[identify(toleration)] = struct{}{}
			spec.Tolerations = append(spec.Tolerations, toleration)
		}
	}
}

// ofNodes returns the tolerations of the taints of the selected nodes, without duplicates, sorted by key, value and
// effect. It skips taints that represent the state of a node, and taints of nodes that are about to be removed.
func ofNodes(nodes []corev1.Node, selector labels.Selector) []corev1.Toleration {
	distinct := map[identity]corev1.Toleration{}
	for _, node := range nodes {
		if !selector.Matches(labels.Set(node.Labels)) {
			continue
		}
		for _, taint := range node.Spec.Taints {
			if !strings.Contains(taint.Key, "kubernetes.io/") && taint.Key != taintOfDeletedNodes {
				toleration := ofTaint(taint)
				distinct[identify(toleration)] = toleration
			}
		}
	}
	return slices.SortedFunc(maps.Values(distinct), func(a, b corev1.Toleration) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Value, b.Value), cmp.Compare(a.Effect, b.Effect))
	})
}

func ofTaint(taint corev1.Taint) corev1.Toleration {
	operator := corev1.TolerationOpEqual
	if taint.Value == "" {
		operator = corev1.TolerationOpExists
	}
	return corev1.Toleration{Key: taint.Key, Operator: operator, Value: taint.Value, Effect: taint.Effect}
}

// identity is a toleration in a comparable form.
type identity struct {
	toleration corev1.Toleration
	seconds    int64
	forever    bool
}

// identify returns the identity of a toleration. The default operator is Equal.
func identify(toleration corev1.Toleration) identity {
	result := identity{
		toleration: toleration,
		seconds:    ptr.Deref(toleration.TolerationSeconds, 0), forever: toleration.TolerationSeconds == nil,
	}
	result.toleration.TolerationSeconds = nil
	result.toleration.Operator = cmp.Or(toleration.Operator, corev1.TolerationOpEqual)
	return result
}
