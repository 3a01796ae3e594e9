package health

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// monitoring has the fields of a Prometheus or Alertmanager of monitoring.coreos.com that the checks read.
type monitoring struct {
	Metadata struct {
		Generation int64 `json:"generation"`
	} `json:"metadata"`
	Spec struct {
		Replicas *int64 `json:"replicas"`
	} `json:"spec"`
	Status struct {
		Conditions        []condition `json:"conditions"`
		AvailableReplicas int64       `json:"availableReplicas"`
		UpdatedReplicas   int64       `json:"updatedReplicas"`
	} `json:"status"`
}

// checkMonitoring implements the rules of gardener-resource-manager. Each condition has its own observedGeneration.
func checkMonitoring(object *monitoring) Verdict {
	replicas := replicasOf(object.Spec.Replicas)
	unhealthy, unavailableStale := object.requireCurrent("Available")
	if available := object.Status.AvailableReplicas; unhealthy == "" && available < replicas {
		unhealthy = fmt.Sprintf("not enough available replicas (%d/%d)", available, replicas)
	}
	progressing, unreconciledStale := object.requireCurrent("Reconciled")
	if progressing == "" {
		progressing = notUpdated(object.Status.UpdatedReplicas, replicas)
	}
	return Verdict{Unhealthy: unhealthy, Progressing: progressing, Unobserved: unavailableStale || unreconciledStale}
}

// requireCurrent returns an explanation if the condition of a type is missing, not True, or observed for an older
// generation. It also returns whether it is stale for that last reason.
func (m *monitoring) requireCurrent(conditionType string) (detail string, stale bool) {
	found := find(m.Status.Conditions, conditionType)
	if found == nil {
		return missing(conditionType), false
	}
	if detail := outdated(found.ObservedGeneration, m.Metadata.Generation); detail != "" {
		return detail, true
	}
	return found.expect(metav1.ConditionTrue), false
}
