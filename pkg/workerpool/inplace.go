package workerpool

import (
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// Pending returns the pools of a Shoot whose machines wait for their update in place, or nil if none does. updated are the hashes that the
// Worker reports for pools whose machines are all updated. A pool without a hash is new. It returns an error if a pool is not valid.
func Pending(shoot *corev1beta1.Shoot, updated map[string]string) (*corev1beta1.PendingWorkerUpdates, error) {
	pools, err := Of(shoot, nil)
	if err != nil {
		return nil, err
	}
	pending := &corev1beta1.PendingWorkerUpdates{}
	for _, pool := range pools {
		hash, known := updated[pool.Worker.Name]
		switch {
		case !pool.InPlace() || !known || hash == pool.InPlaceHash():
		case *pool.Worker.UpdateStrategy == corev1beta1.ManualInPlaceUpdate:
			pending.ManualInPlaceUpdate = append(pending.ManualInPlaceUpdate, pool.Worker.Name)
		default:
			pending.AutoInPlaceUpdate = append(pending.AutoInPlaceUpdate, pool.Worker.Name)
		}
	}
	if len(pending.ManualInPlaceUpdate)+len(pending.AutoInPlaceUpdate) == 0 {
		return nil, nil
	}
	return pending, nil
}

// HasInPlace reports whether a Shoot has a pool whose machines are updated in place.
func HasInPlace(shoot *corev1beta1.Shoot) bool {
	for i := range shoot.Spec.Provider.Workers {
		if corev1beta1.IsUpdateStrategyInPlace(shoot.Spec.Provider.Workers[i].UpdateStrategy) {
			return true
		}
	}
	return false
}
