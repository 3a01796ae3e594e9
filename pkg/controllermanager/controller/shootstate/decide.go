package shootstate

import (
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// Decision is what happens to the finalizer of a ShootState.
type Decision string

const (
	leave   Decision = "leave"
	add     Decision = "add"
	release Decision = "release"
)

// Decide decides by the last operation of the Shoot, as Gardener does. A ShootState whose Shoot does not exist, for which shoot is nil, is
// released, because nothing else would do that.
func Decide(shoot *corev1beta1.Shoot) Decision {
	if shoot == nil {
		return release
	}
	last := shoot.Status.LastOperation
	if last == nil {
		return leave
	}
	switch last.Type {
	case corev1beta1.LastOperationTypeMigrate:
		return add
	case corev1beta1.LastOperationTypeRestore:
		if last.State == corev1beta1.LastOperationStateSucceeded {
			return release
		}
		return add
	case corev1beta1.LastOperationTypeReconcile:
		return release
	}
	return leave
}

// Keep keeps the type and the state of the last operation of a Shoot, for a cache.
func Keep(kept, shoot *corev1beta1.Shoot) {
	last := shoot.Status.LastOperation
	if last == nil {
		return
	}
	if kept.Status.LastOperation == nil {
		kept.Status.LastOperation = &corev1beta1.LastOperation{}
	}
	kept.Status.LastOperation.Type, kept.Status.LastOperation.State = last.Type, last.State
}
