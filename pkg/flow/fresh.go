package flow

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Keys of extension objects.
const (
	annotationOperation = "gardener.cloud/operation"
	annotationTimestamp = "gardener.cloud/timestamp"
)

// NotFresh says why the status of an extension object does not belong to the spec that a plan wants now; empty if it does. A bundle that is
// computed from that status is held until then: a dependency would let pass what was computed from the old one. Both are read only.
func NotFresh(wanted, live *unstructured.Unstructured) string {
	what := fmt.Sprintf("%s %s", wanted.GetKind(), keyOf(wanted))
	if live == nil || live.GetUID() == "" {
		return what + " does not exist"
	}
	if live.GetDeletionTimestamp() != nil {
		return what + " is being deleted"
	}
	if !contains(live.Object["spec"], wanted.Object["spec"]) {
		return what + " does not have the spec of this plan yet"
	}
	if live.GetAnnotations()[annotationOperation] != "" {
		return what + " has an operation that its controller has not begun"
	}
	status, _ := live.Object["status"].(map[string]any)
	observed, _, _ := unstructured.NestedInt64(live.Object, "status", "observedGeneration")
	state, _, _ := unstructured.NestedString(live.Object, "status", "lastOperation", "state")
	switch {
	case observed != live.GetGeneration():
		return fmt.Sprintf("%s has generation %d, but its controller has observed only %d", what, live.GetGeneration(), observed)
	case status["lastError"] != nil:
		return what + " has an error"
	case state != "Succeeded":
		return fmt.Sprintf("the last operation of %s is %q and not Succeeded", what, state)
	}
	return notSince(what, live)
}

// notSince says whether the last operation is older than what was asked for.
func notSince(what string, live *unstructured.Unstructured) string {
	asked := live.GetAnnotations()[annotationTimestamp]
	if asked == "" {
		return ""
	}
	updated, _, _ := unstructured.NestedString(live.Object, "status", "lastOperation", "lastUpdateTime")
	since, err := time.Parse(time.RFC3339Nano, asked)
	if err != nil {
		return fmt.Sprintf("the annotation %s of %s is not a time", annotationTimestamp, what)
	}
	at, err := time.Parse(time.RFC3339Nano, updated)
	if err != nil || at.Before(since.Truncate(time.Second)) {
		return "the last operation of " + what + " is older than the one that was asked for"
	}
	return ""
}

// contains reports whether all fields of a wanted value are in a live one, which may have more of them.
func contains(live, wanted any) bool {
	switch wanted := wanted.(type) {
	case nil:
		return true
	case map[string]any:
		have, ok := live.(map[string]any)
		if !ok {
			return false
		}
		for name, value := range wanted {
			if !contains(have[name], value) {
				return false
			}
		}
		return true
	case []any:
		have, ok := live.([]any)
		if !ok || len(have) != len(wanted) {
			return false
		}
		for i := range wanted {
			if !contains(have[i], wanted[i]) {
				return false
			}
		}
		return true
	}
	return equality.Semantic.DeepEqual(live, wanted)
}
