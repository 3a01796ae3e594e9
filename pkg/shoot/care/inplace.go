package care

import (
	"strings"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/workerpool"
)

// reasonPendingPools is the reason of the constraint ManualInPlaceWorkersUpdated (Gardener).
const reasonPendingPools = "WorkerPoolsWithManualInPlaceUpdateStrategyPending"

// updatesInPlace returns status.inPlaceUpdates: the pools whose machines wait for their update in place. The API server refuses further
// changes of them. The status stays as it is while the Worker reports nothing, or a pool is not valid.
func (o Observation) updatesInPlace() *corev1beta1.InPlaceUpdatesStatus {
	if !workerpool.HasInPlace(o.Shoot) {
		return nil
	}
	if o.UpdatedInPlace == nil {
		return o.Shoot.Status.InPlaceUpdates
	}
	pending, err := workerpool.Pending(o.Shoot, o.UpdatedInPlace)
	if err != nil {
		return o.Shoot.Status.InPlaceUpdates
	}
	if pending == nil {
		return nil
	}
	return &corev1beta1.InPlaceUpdatesStatus{PendingWorkerUpdates: pending}
}

// pendingPools checks whether pools wait until the user selects their nodes for an update in place.
func (o Observation) pendingPools() *finding {
	updates := o.updatesInPlace()
	if o.Hibernated || updates == nil || updates.PendingWorkerUpdates == nil || len(updates.PendingWorkerUpdates.ManualInPlaceUpdate) == 0 {
		return nil
	}
	return &finding{
		status: corev1beta1.ConditionFalse, reason: reasonPendingPools,
		message: "the nodes of these worker pools wait until you select them for their update: " + strings.Join(updates.PendingWorkerUpdates.ManualInPlaceUpdate, ", "),
	}
}
