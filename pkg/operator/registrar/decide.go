package registrar

import (
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/operator/controller"
)

// decide returns the controllers that should run, by the time from which they do. stop is set if the process must end, because controllers
// run without a Garden. A process that starts again has none of them.
func decide(gardens []operatorv1alpha1.Garden, now controller.When) (next controller.When, stop bool) {
	if len(gardens) == 0 {
		return now, now > controller.Always
	}
	next = max(now, controller.WithGarden)
	for i := range gardens {
		if isUp(&gardens[i]) {
			return controller.WithVirtual, false
		}
	}
	return next, false
}

// isUp reports whether the virtual garden was reconciled once, and is not being deleted.
func isUp(garden *operatorv1alpha1.Garden) bool {
	last := garden.Status.LastOperation
	return garden.DeletionTimestamp == nil && last != nil && last.State == corev1beta1.LastOperationStateSucceeded &&
		last.Type != corev1beta1.LastOperationTypeDelete
}
