package flow

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Annotations of extension objects.
const (
	annotationOperation = "gardener.cloud/operation"
	annotationTimestamp = "gardener.cloud/timestamp"
	// operationMigrate makes an extension give up an object without deleting what the object stands for.
	operationMigrate = "migrate"
)

// NotFresh returns why the status of an extension object does not belong to the spec that a plan wants now, empty if it
// does. A bundle computed from that status must be held until then: a dependency would pass a bundle computed from the
// old status. Both arguments are read only.
func NotFresh(wanted, live *unstructured.Unstructured) string {
	what := fmt.Sprintf("%s %s", wanted.GetKind(), keyOf(wanted))
	if live == nil || live.GetUID() == "" {
		return what + " does not exist"
	}
	if live.GetDeletionTimestamp() != nil {
		return what + " is being deleted"
	}
	if !contains(live.Object["spec"], wanted.Object["spec"]) {
		return what + " does not have the current spec yet"
	}
	if live.GetAnnotations()[annotationOperation] != "" {
		return what + " has an operation that its controller has not started"
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

// notSince returns an error text if the last operation is older than the last request.
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
		return "the last operation of " + what + " is older than the requested one"
	}
	return ""
}

// contains reports whether live contains all fields of wanted. It may have additional fields.
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
