package unitcheck

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/conditiontext"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/host"
)

// ConditionType is the condition of Nodes with the result (Gardener).
const ConditionType corev1.NodeConditionType = "SystemdUnitsReady"

// The reasons of the condition (Gardener).
const (
	reasonHealthy     = "AllUnitsHealthy"
	reasonUnhealthy   = "UnhealthyUnits"
	reasonProgressing = "ProgressingUnits"
)

// enabledStates are the words of systemd for units that start with the machine, or that others start.
var enabledStates = []string{"enabled", "enabled-runtime", "static", "indirect", "alias", "generated", "linked", "linked-runtime", "transient"}

// runs returns whether a unit is meant to run, or nil if its configuration does not say it: units of the operating system.
func runs(unit *extensionsv1alpha1.Unit) *bool {
	switch {
	case ptr.Deref(unit.Command, "") == extensionsv1alpha1.CommandStop:
		return ptr.To(false)
	case unit.Enable != nil:
		return unit.Enable
	case unit.Content != nil || len(unit.DropIns) > 0:
		return ptr.To(true)
	}
	return nil
}

// judge returns why a unit is not healthy, empty if it is, and whether it is still starting or stopping.
func judge(unit *extensionsv1alpha1.Unit, state host.UnitState, now time.Time, stuck time.Duration) (objection string, progressing bool) {
	wanted := runs(unit)
	changing := state.Active == "activating" || state.Active == "deactivating"
	switch {
	case state.Load != "loaded":
		return "is " + state.Load, false
	case state.Active == "failed":
		return "failed", false
	case wanted != nil && *wanted && !slices.Contains(enabledStates, state.Enabled):
		return "is " + state.Enabled + " and must be enabled", false
	case wanted != nil && !*wanted && strings.HasPrefix(state.Enabled, "enabled"):
		return "is " + state.Enabled + " and must be disabled", false
	case wanted != nil && !*wanted && state.Active == "active":
		return "runs and must not", false
	case changing && state.Sub != "auto-restart" && now.Sub(state.Since) >= stuck:
		return fmt.Sprintf("is %s for more than %s", state.Active, stuck), false
	case changing:
		return "", true
	case wanted != nil && *wanted && state.Active == "inactive" && state.Type != "oneshot" && !state.TriggeredBy:
		return "does not run", false
	}
	return "", false
}

// conclude returns the condition for all units.
func conclude(units []extensionsv1alpha1.Unit, states []host.UnitState, now time.Time, stuck time.Duration) corev1.NodeCondition {
	var objections, progressing []string
	for i := range units {
		objection, changes := judge(&units[i], states[i], now, stuck)
		if objection != "" {
			objections = append(objections, units[i].Name+" "+objection)
		}
		if changes {
			progressing = append(progressing, units[i].Name)
		}
	}
	condition := corev1.NodeCondition{Type: ConditionType, Status: corev1.ConditionTrue, Reason: reasonHealthy, Message: "All systemd units are healthy"}
	switch {
	case len(objections) > 0:
		condition.Status, condition.Reason, condition.Message = corev1.ConditionFalse, reasonUnhealthy, strings.Join(objections, "; ")
	case len(progressing) > 0:
		condition.Status, condition.Reason = corev1.ConditionFalse, reasonProgressing
		condition.Message = "Starting or stopping: " + strings.Join(progressing, ", ")
	}
	condition.Message = conditiontext.ForCondition(condition.Message)
	return condition
}

// patch returns the strategic merge patch of the status of a Node that has another condition, or nil if it has this one.
func patch(node *corev1.Node, condition corev1.NodeCondition, now time.Time) ([]byte, error) {
	condition.LastHeartbeatTime, condition.LastTransitionTime = metav1.NewTime(now), metav1.NewTime(now)
	for _, present := range node.Status.Conditions {
		if present.Type != condition.Type {
			continue
		}
		if present.Status == condition.Status && present.Reason == condition.Reason && present.Message == condition.Message {
			return nil, nil
		}
		if present.Status == condition.Status {
			condition.LastTransitionTime = present.LastTransitionTime
		}
	}
	return json.Marshal(map[string]any{"status": map[string]any{"conditions": []corev1.NodeCondition{condition}}})
}
