package flow

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/log"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// LogTransition logs the start, the end and each failure of an operation: a last operation whose type or state differs from
// the one before. Mere progress is not logged. Both may be nil.
func LogTransition(ctx context.Context, before, after *corev1beta1.LastOperation) {
	if after == nil || before != nil && before.Type == after.Type && before.State == after.State {
		return
	}
	var from corev1beta1.LastOperationState
	if before != nil {
		from = before.State
	}
	log.FromContext(ctx).Info("The operation has another state",
		"operation", after.Type, "from", from, "to", after.State, "progress", after.Progress, "description", after.Description)
}
