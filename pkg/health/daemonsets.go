package health

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// checkDaemonSet has the rules of gardener-resource-manager, but expects no Pods to be updated with strategy OnDelete, with
// which the DaemonSet controller updates none.
func checkDaemonSet(set *appsv1.DaemonSet) Verdict {
	if detail := outdated(set.Status.ObservedGeneration, set.Generation); detail != "" {
		return unobserved(detail)
	}
	verdict := Verdict{Unhealthy: misplaced(set)}
	if set.Spec.UpdateStrategy.Type != appsv1.OnDeleteDaemonSetStrategyType {
		verdict.Progressing = notUpdated(set.Status.UpdatedNumberScheduled, set.Status.DesiredNumberScheduled)
	}
	return verdict
}

// misplaced says which Pods are not where, or how, they have to be; empty if all are. A rollout may have Pods unavailable.
func misplaced(set *appsv1.DaemonSet) string {
	status := set.Status
	switch {
	case status.CurrentNumberScheduled < status.DesiredNumberScheduled:
		return fmt.Sprintf("not enough scheduled pods (%d/%d)", status.CurrentNumberScheduled, status.DesiredNumberScheduled)
	case status.NumberMisscheduled > 0:
		return fmt.Sprintf("misscheduled pods found (%d)", status.NumberMisscheduled)
	case status.UpdatedNumberScheduled < status.DesiredNumberScheduled:
		if allowed := maxUnavailable(set); int(status.NumberUnavailable) > allowed {
			return fmt.Sprintf("too many unavailable pods found (%d/%d, only max. %d unavailable pods allowed)",
				status.NumberUnavailable, status.CurrentNumberScheduled, allowed)
		}
	case status.NumberUnavailable > 0:
		return fmt.Sprintf("too many unavailable pods found (%d/%d)", status.NumberUnavailable, status.CurrentNumberScheduled)
	}
	return ""
}

// maxUnavailable returns how many Pods may be unavailable during a rollout.
func maxUnavailable(set *appsv1.DaemonSet) int {
	rollingUpdate := set.Spec.UpdateStrategy.RollingUpdate
	if set.Spec.UpdateStrategy.Type != appsv1.RollingUpdateDaemonSetStrategyType || rollingUpdate == nil {
		return 0
	}
	scheduled := int(set.Status.DesiredNumberScheduled)
	allowed, err := intstr.GetScaledValueFromIntOrPercent(rollingUpdate.MaxUnavailable, scheduled, false)
	if err != nil {
		return 0 // not set
	}
	return allowed
}
