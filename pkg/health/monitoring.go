package health

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// monitoring is what matters of a Prometheus or Alertmanager of monitoring.coreos.com.
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

// checkMonitoring has the rules of gardener-resource-manager. Each condition says for itself what it has observed.
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

// requireCurrent says why there is no condition of a type that is True for the present generation, and whether that is
// because it is about an older one.
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
