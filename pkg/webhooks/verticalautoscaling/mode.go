package verticalautoscaling

// The relevant fields of VerticalPodAutoscalers (autoscaling.k8s.io/v1).
const (
	fieldPolicy = "updatePolicy"
	fieldMode   = "updateMode"
)

// The modes of an updatePolicy.
const (
	modeAuto     = "Auto"
	modeRecreate = "Recreate"
	modeInPlace  = "InPlaceOrRecreate"
)

// updateInPlace replaces a mode, explicit or default, that evicts Pods, and labels the changed object. It does not change
// an object whose fields have other types than those of the API, because the API server rejects it with a better message.
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

// child returns a field that is a map. If the field is missing, it returns an empty map that is not part of the parent
// yet. ok is false if the field has another type.
func child(parent map[string]any, field string) (_ map[string]any, ok bool) {
	value, found := parent[field]
	if !found || value == nil {
		return map[string]any{}, true
	}
	fields, ok := value.(map[string]any)
	return fields, ok
}

// evicts reports whether a mode evicts Pods for a resize. The mode nil is the default.
func evicts(mode any) bool {
	switch mode {
	case nil, "", modeAuto, modeRecreate:
		return true
	default:
		return false
	}
}
