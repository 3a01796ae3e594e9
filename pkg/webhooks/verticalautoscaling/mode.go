package verticalautoscaling

// The fields of VerticalPodAutoscalers that matter (autoscaling.k8s.io/v1).
const (
	fieldPolicy = "updatePolicy"
	fieldMode   = "updateMode"
)

// Modes of an updatePolicy.
const (
	modeAuto     = "Auto"
	modeRecreate = "Recreate"
	modeInPlace  = "InPlaceOrRecreate"
)

// updateInPlace changes the mode, given or default, that would evict Pods, and labels what it changed. An object whose fields have
// other types than those of the API stays as it is: the API server refuses it in better words.
func updateInPlace(autoscaler map[string]any) {
	metadata, isMap := autoscaler["metadata"].(map[string]any)
	if !isMap {
		return
	}
	labels, ok := child(metadata, "labels")
	if !ok {
		return
	}
	spec, isMap := autoscaler["spec"].(map[string]any)
	if !isMap {
		return
	}
	policy, ok := child(spec, fieldPolicy)
	if !ok || !evicts(policy[fieldMode]) {
		return
	}
	policy[fieldMode], spec[fieldPolicy] = modeInPlace, policy
	labels[LabelMutated], metadata["labels"] = "true", labels
}

// child returns a field that is a map, or an empty map, which is not in the parent yet, if it is missing.
func child(parent map[string]any, field string) (_ map[string]any, ok bool) {
	value, found := parent[field]
	if !found || value == nil {
		return map[string]any{}, true
	}
	fields, ok := value.(map[string]any)
	return fields, ok
}

// evicts reports whether Pods are evicted for a resize in a mode, nil for the default.
func evicts(mode any) bool {
	switch mode {
	case nil, "", modeAuto, modeRecreate:
		return true
	default:
		return false
	}
}
