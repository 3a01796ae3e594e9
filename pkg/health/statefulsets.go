package health

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
)

// checkStatefulSet has the rules of gardener-resource-manager, but expects only those replicas to be updated that the
// StatefulSet controller updates: none with strategy OnDelete, those from the partition on otherwise.
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

// partitionOf returns how many replicas keep their revision.
func partitionOf(set *appsv1.StatefulSet) int32 {
	rollingUpdate := set.Spec.UpdateStrategy.RollingUpdate
	if rollingUpdate == nil || rollingUpdate.Partition == nil {
		return 0
	}
	return max(*rollingUpdate.Partition, 0)
}
