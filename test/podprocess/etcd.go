package podprocess

import "time"

// EtcdStatus returns the status of an Etcd of a generation whose members are simulated: all are ready, or they have lost their data, with this
// message.
func EtcdStatus(generation int64, lost string, at time.Time) map[string]any {
	now, ready, errs := at.UTC().Format(time.RFC3339), "True", []any{}
	if lost != "" {
		ready, errs = "False", []any{map[string]any{"code": "ERR_DATA_LOST", "description": lost, "observedAt": now}}
	}
	condition := func(kind, status string) map[string]any {
		return map[string]any{
			"type": kind, "status": status, "reason": "Simulated", "message": "the members are simulated", "lastTransitionTime": now, "lastUpdateTime": now,
		}
	}
	return map[string]any{
		"observedGeneration": generation, "ready": lost == "", "lastErrors": errs,
		"conditions": []any{condition("Ready", ready), condition("AllMembersUpdated", "True")},
	}
}
