package criticalcomponents

import (
	"slices"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingcorev1 "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// taintCloudProviderUninitialized keeps Pods off a node until the cloud controller manager has initialized it.
const taintCloudProviderUninitialized = "node.cloudprovider.kubernetes.io/uninitialized"

// transientTaints are the taints that new nodes may have and that Kubernetes removes itself. A DaemonSet that does not
// tolerate them gets its Pod a little later.
var transientTaints = []string{
	corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeNetworkUnavailable, taintCloudProviderUninitialized,
}

// shouldRunOn reports whether a DaemonSet should have a Pod on a node, by the rules of Kubernetes' DaemonSet
// controller, with one difference: it ignores transientTaints. New nodes are not ready. Without this difference, no
// node would wait for a DaemonSet that does not tolerate these taints.
func shouldRunOn(daemonSet *appsv1.DaemonSet, node *corev1.Node) bool {
	spec := &daemonSet.Spec.Template.Spec
	if spec.NodeName != "" && spec.NodeName != node.Name {
		return false
	}
	// An invalid expression matches nothing, as in Kubernetes.
	matches, _ := nodeaffinity.NewRequiredNodeAffinity(spec.NodeSelector, spec.Affinity).Match(node)
	if !matches {
		return false
	}
	_, repelled := schedulingcorev1.FindMatchingUntoleratedTaint(logr.Discard(), node.Spec.Taints, tolerationsOf(spec), repels, true)
	return !repelled
}

// repels reports whether a taint permanently repels Pods that do not tolerate it.
func repels(taint *corev1.Taint) bool {
	return (taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute) &&
		!slices.Contains(transientTaints, taint.Key)
}

// tolerationsOf returns the relevant tolerations of the Pods of a DaemonSet: those of its template, and those that
// Kubernetes adds, except for transientTaints.
func tolerationsOf(spec *corev1.PodSpec) []corev1.Toleration {
	tolerations := slices.Clone(spec.Tolerations)
	for _, key := range []string{
		corev1.TaintNodeDiskPressure, corev1.TaintNodeMemoryPressure, corev1.TaintNodePIDPressure, corev1.TaintNodeUnschedulable,
	} {
		tolerations = append(tolerations, corev1.Toleration{
			Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule,
		})
	}
	return tolerations
}
