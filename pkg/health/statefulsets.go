package health

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
)

// checkStatefulSet implements the rules of gardener-resource-manager, with one difference: it expects updates only of
// the replicas that the StatefulSet controller updates. With the strategy OnDelete, it updates no replicas, otherwise
// those from the partition on.
func checkStatefulSet(set *appsv1.StatefulSet) Verdict {
	if detail := outdated(set.Status.ObservedGeneration, set.Generation); detail != "" {
		return unobserved(detail)
	}
	var verdict Verdict
	replicas := replicasOf(set.Spec.Replicas)
	if ready := set.Status.ReadyReplicas; ready < replicas {
		verdict.Unhealthy = fmt.Sprintf("not enough ready replicas (%d/%d)", ready, replicas)
	}
	if set.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType {
		verdict.Progressing = notUpdated(set.Status.UpdatedReplicas, replicas-partitionOf(set))
	}
	return verdict
}

// partitionOf returns the number of replicas that keep their revision.
func partitionOf(set *appsv1.StatefulSet) int32 {
	rollingUpdate := set.Spec.UpdateStrategy.RollingUpdate
	if rollingUpdate == nil || rollingUpdate.Partition == nil {
		return 0
	}
	return max(*rollingUpdate.Partition, 0)
}
