package care

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// Reasons of the condition EveryNodeReady (Gardener), except reasonTooManyNodes.
const (
	reasonEveryNode    = "EveryNodeReady"
	reasonNode         = "NodeUnhealthy"
	reasonKubelet      = "KubeletVersionMismatch"
	reasonMissingNodes = "MissingNodes"
	reasonOutdated     = "OperatingSystemConfigOutdated"
	reasonTooManyNodes = "TooManyNodes"
)

// mostNamed is how many nodes a message names.
const mostNamed = 5

// Nodes is what is known about the nodes of a cluster.
type Nodes struct {
	// Items are the nodes, sorted by name.
	Items []Node
	// Checksums are the checksums of the configurations that nodes have to apply, by the names of their Secrets.
	Checksums map[string]string
	// First are the nodes that apply a changed configuration before the others, by the same names, until they have run with it.
	First map[string]string
	// Crowded is set if there are more nodes than the Shoot can have. They are not watched then.
	Crowded bool
}

// Node contains the fields of a node on which the condition depends.
type Node struct {
	Name, Pool, Secret string
	// Applied is the checksum of the configuration that the node has applied, and AppliedAt when it did so; zero if it does not
	// say that.
	Applied   string
	AppliedAt time.Time
	Kubelet   string
	// Leaving is set if the node is about to be replaced, so that it gets no new configuration.
	Leaving bool
	// Problem is why the node is not healthy, or empty. Pressure is set if it has too little of a resource.
	Problem  string
	Pressure bool
	// NotReadySince is when the node became not ready; zero if it is ready.
	NotReadySince time.Time
}

// everyNodeReady checks whether the pools have their nodes, and whether these are healthy, run the declared version of kubelet, and have
// applied their configuration. known is false if the nodes have not been read yet, so that the condition stays as it is.
func (o Observation) everyNodeReady() (found finding, known bool) {
	switch {
	case o.Hibernated:
		return finding{}, true
	case !o.Asked:
		return finding{status: corev1beta1.ConditionUnknown, reason: corev1beta1.ReasonConditionCheckError, message: messageNotServing}, true
	case o.Cluster == nil || o.Cluster.Nodes == nil:
		before := corev1beta1.FindCondition(o.Shoot.Status.Conditions, corev1beta1.ShootEveryNodeReady)
		return finding{
			status: corev1beta1.ConditionUnknown, reason: corev1beta1.ReasonConditionInitialized, message: "the nodes have not been read yet",
		}, before == nil
	}
	nodes := *o.Cluster.Nodes
	if nodes.Crowded {
		return finding{
			status: corev1beta1.ConditionFalse, reason: reasonTooManyNodes,
			message: fmt.Sprintf("the cluster has more than %d nodes, so they are not watched: delete Nodes without a machine", nodeLimit(o.Shoot)),
			codes:   []corev1beta1.ErrorCode{corev1beta1.ErrorConfigurationProblem},
		}, true
	}
	for i := range o.Shoot.Spec.Provider.Workers {
		if found, fails := checkPool(&o.Shoot.Spec.Provider.Workers[i], o.Shoot.Spec.Kubernetes.Version, nodes); fails {
			return found, true
		}
	}
	return finding{status: corev1beta1.ConditionTrue, reason: reasonEveryNode, message: "All nodes are ready."}, true
}

// checkPool returns the first problem of a pool.
func checkPool(worker *corev1beta1.Worker, version string, nodes Nodes) (finding, bool) {
	if own := worker.Kubernetes; own != nil {
		version = ptr.Deref(own.Version, version)
	}
	var unhealthy, mismatched, outdated []string
	pressure, count, first := false, 0, ""
	for _, node := range nodes.Items {
		if node.Pool != worker.Name {
			continue
		}
		count++
		if node.Problem != "" {
			unhealthy, pressure = append(unhealthy, node.Name+" ("+node.Problem+")"), pressure || node.Pressure
		}
		if otherPatch(version, node.Kubelet) {
			mismatched = append(mismatched, node.Name+" ("+node.Kubelet+")")
		}
		if nodes.outdated(node) {
			outdated, first = append(outdated, node.Name), cmp.Or(nodes.First[node.Secret], first)
		}
	}
	fails := func(reason, text string, names []string) (finding, bool) {
		return finding{
			status: corev1beta1.ConditionFalse, reason: reason, message: fmt.Sprintf("worker pool %s: %s%s", worker.Name, text, listed(names)),
		}, true
	}
	switch {
	case len(unhealthy) > 0:
		found, is := fails(reasonNode, "nodes are not healthy: ", unhealthy)
		if pressure {
			found.codes = []corev1beta1.ErrorCode{corev1beta1.ErrorConfigurationProblem}
		}
		return found, is
	case len(mismatched) > 0:
		return fails(reasonKubelet, "nodes do not run kubelet "+version+": ", mismatched)
	case count < int(worker.Minimum):
		return fails(reasonMissingNodes, fmt.Sprintf("%d of at least %d nodes have joined the cluster", count, worker.Minimum), nil)
	case len(outdated) > 0:
		if first != "" {
			return fails(reasonOutdated, "nodes wait until "+first+" runs with the current configuration, which it applies first: ", outdated)
		}
		return fails(reasonOutdated, "nodes have not applied their current configuration yet: ", outdated)
	}
	return finding{}, false
}

// listed returns a list of nodes for a message.
func listed(names []string) string {
	if len(names) > mostNamed {
		return strings.Join(names[:mostNamed], ", ") + fmt.Sprintf(" and %d others", len(names)-mostNamed)
	}
	return strings.Join(names, ", ")
}

// otherPatch reports whether two versions differ only in the patch. Nodes with another minor version are replaced, or wait until users
// update the pool.
func otherPatch(declared, running string) bool {
	a, err := semver.NewVersion(declared)
	if err != nil {
		return false
	}
	b, err := semver.NewVersion(running)
	return err == nil && a.Major() == b.Major() && a.Minor() == b.Minor() && a.Patch() != b.Patch()
}

// nodeLimit returns the number of nodes above which they are not watched, because a user of the cluster has created Nodes without machines.
func nodeLimit(shoot *corev1beta1.Shoot) int {
	const spare = 50
	most := 0
	for _, worker := range shoot.Spec.Provider.Workers {
		most += int(worker.Maximum)
	}
	return 2*most + spare
}

// problemOf returns why a node is not healthy, or an empty string, and whether the reason is too little of a resource.
func problemOf(conditions []corev1.NodeCondition) (problem string, pressure bool) {
	ready := slices.ContainsFunc(conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	for _, condition := range conditions {
		switch condition.Type {
		case corev1.NodeDiskPressure, corev1.NodeMemoryPressure, corev1.NodePIDPressure:
			if condition.Status == corev1.ConditionTrue {
				return string(condition.Type), true
			}
		case corev1.NodeNetworkUnavailable:
			if condition.Status == corev1.ConditionTrue {
				problem = string(condition.Type)
			}
		}
	}
	if !ready {
		problem = "not ready"
	}
	return problem, false
}

// hasWorkers reports whether a Shoot declares worker pools.
func hasWorkers(shoot *corev1beta1.Shoot) bool { return len(shoot.Spec.Provider.Workers) > 0 }

// nodes is the check of the condition EveryNodeReady for a Shoot with workers.
func (o Observation) nodes() (finding, time.Time) {
	found, _ := o.everyNodeReady()
	return found, time.Time{}
}
