package care

import (
	"slices"
	"time"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// brokenWithin is how soon after it has applied a configuration a node becomes not ready because of it. kube-controller-manager
// notices a kubelet that is gone after 50 seconds; one that fails under load takes longer.
const brokenWithin = 15 * time.Minute

// outdated reports whether a node has to apply a configuration.
func (n Nodes) outdated(node Node) bool {
	wanted, known := n.Checksums[node.Secret]
	return known && !node.Leaving && node.Applied != wanted
}

// rollout returns what the nodes contribute to the rollout of a version of gardenlet. known is false while they have not been read,
// and if there are too many of them.
func (o Observation) rollout() (state flow.Nodes, known bool) {
	if o.Hibernated || !hasWorkers(o.Shoot) {
		return flow.Nodes{}, true
	}
	if o.Cluster == nil || o.Cluster.Nodes == nil || o.Cluster.Nodes.Crowded {
		return flow.Nodes{}, false
	}
	nodes := *o.Cluster.Nodes
	for _, node := range nodes.Items {
		if !slices.ContainsFunc(o.Shoot.Spec.Provider.Workers, func(worker corev1beta1.Worker) bool { return rollsItself(worker, node.Pool) }) {
			continue
		}
		if nodes.outdated(node) {
			state.Rolling = state.Rolling || node.Problem == "" && node.Applied != ""
		} else if node.brokeWith() {
			state.Failing = true
		}
	}
	return state, true
}

// rollsItself reports whether a pool has the name, and its nodes apply configurations by themselves. Those that are updated in place wait
// for hours until they are drained, or until the user chooses them. Their Worker reports that.
func rollsItself(worker corev1beta1.Worker, name string) bool {
	return worker.Name == name && !corev1beta1.IsUpdateStrategyInPlace(worker.UpdateStrategy)
}

// brokeWith reports whether a node that is not ready has become so soon after it applied its configuration.
func (n Node) brokeWith() bool {
	if n.AppliedAt.IsZero() || n.NotReadySince.IsZero() {
		return false
	}
	after := n.NotReadySince.Sub(n.AppliedAt)
	return after >= -time.Minute && after <= brokenWithin // the clocks of nodes may be wrong by some seconds
}
