package flow

import (
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

func TestLogTransition(t *testing.T) {
	operation := func(state corev1beta1.LastOperationState, progress int32) *corev1beta1.LastOperation {
		return &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeReconcile, State: state, Progress: progress}
	}
	const running, failed = corev1beta1.LastOperationStateProcessing, corev1beta1.LastOperationStateFailed
	for name, test := range map[string]struct {
		before, after *corev1beta1.LastOperation
		want          string
	}{
		"nothing":       {nil, nil, ""},
		"the first one": {nil, operation(running, 0), `"from"="" "to"="Processing"`},
		"progress":      {operation(running, 0), operation(running, 50), ""},
		"a failure":     {operation(running, 50), operation(failed, 50), `"from"="Processing" "to"="Failed" "progress"=50`},
		"another type":  {&corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeCreate, State: running}, operation(running, 0), `"operation"="Reconcile"`},
	} {
		var lines []string
		logger := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
		LogTransition(log.IntoContext(t.Context(), logger), test.before, test.after)
		if got := strings.Join(lines, "\n"); (test.want == "") != (got == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: logged %q, want %q", name, got, test.want)
		}
	}
}
