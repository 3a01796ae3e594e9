// Package node defines which fields of Nodes the caches keep. Several controllers and webhooks share them. The
// controllers are in the packages below it.
package node

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/cachetransform"
)

// AnnotationReconciliationDelay on a Node is the delay before its node agent reconciles, as a Go duration
// (gardener-resource-manager).
const AnnotationReconciliationDelay = "node-agent.gardener.cloud/reconciliation-delay"

// TaintLeaving is the taint of Nodes that are about to be replaced (machine-controller-manager).
const TaintLeaving = "deployment.machine.sapcloud.io/prefer-no-schedule"

// IsLeaving reports whether a Node is about to be replaced.
func IsLeaving(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == TaintLeaving })
}

// AppliedAt returns when a node applied its configuration, in UTC; zero if it does not say so.
func AppliedAt(node *corev1.Node) time.Time {
	at, err := time.Parse(time.RFC3339, node.Annotations[constants.AnnotationNodeAgentAppliedAt])
	if err != nil {
		return time.Time{}
	}
	return at.UTC()
}

// Reduce returns a copy of a Node with only the needed fields: identity, labels, the annotations of node agents, taints
// and unschedulable, addresses, and whether it is ready, and since when it is not. Kubelets report much more in each status, mostly images. Objects other than Nodes
// are returned unchanged.
func Reduce(obj any) (any, error) {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return obj, nil
	}
	reduced := &corev1.Node{
		ObjectMeta: cachetransform.Meta(node),
		Spec:       corev1.NodeSpec{Taints: node.Spec.Taints, Unschedulable: node.Spec.Unschedulable},
		Status:     corev1.NodeStatus{Addresses: node.Status.Addresses},
	}
	reduced.Labels, reduced.CreationTimestamp = node.Labels, node.CreationTimestamp
	reduced.Annotations = cachetransform.KeepKeys(node.Annotations, AnnotationReconciliationDelay,
		constants.AnnotationChecksumCloudConfigData, constants.AnnotationNodeAgentAppliedAt)
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			reduced.Status.Conditions = []corev1.NodeCondition{{
				Type: condition.Type, Status: condition.Status, LastTransitionTime: condition.LastTransitionTime,
			}}
		}
	}
	return reduced, nil
}
