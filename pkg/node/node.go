// Package node defines which fields of Nodes the caches keep. Several controllers and webhooks share them. The
// controllers are in the packages below it.
package node

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/trellis-k8s/trellis/pkg/cachetransform"
)

// AnnotationReconciliationDelay on a Node is the delay before its node agent reconciles, as a Go duration
// (gardener-resource-manager).
const AnnotationReconciliationDelay = "node-agent.gardener.cloud/reconciliation-delay"

// Reduce returns a copy of a Node with only the needed fields: identity, labels, the annotation with the delay, taints
// and unschedulable, and addresses. Kubelets report much more in each status, mostly images. Objects other than Nodes
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
	reduced.Annotations = cachetransform.KeepKeys(node.Annotations, AnnotationReconciliationDelay)
	return reduced, nil
}
