package health

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// checkDaemonSet implements the rules of gardener-resource-manager, with one exception: it does not expect updated Pods
// with the strategy OnDelete, because the DaemonSet controller updates none then.
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

// misplaced returns an explanation if Pods are missing, misscheduled or unavailable, and "" otherwise. During a
// rollout, some Pods may be unavailable.
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
