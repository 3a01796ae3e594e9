package validation

import (
	"slices"

	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// hibernated reports whether a Shoot is hibernated, or its specification requests it.
func hibernated(shoot *v1beta1.Shoot) bool {
	return hibernationWanted(&shoot.Spec) || shoot.Status.IsHibernated
}

func hibernationWanted(spec *v1beta1.ShootSpec) bool {
	return spec.Hibernation != nil && ptr.Deref(spec.Hibernation.Enabled, false)
}

// canStartRotation reports whether the last operation left a complete Shoot, whose credentials can be rotated.
func canStartRotation(operation *v1beta1.LastOperation) bool {
	if operation == nil {
		return false
	}
	switch operation.Type {
	case v1beta1.LastOperationTypeCreate, v1beta1.LastOperationTypeRestore:
		return operation.State == v1beta1.LastOperationStateSucceeded
	case v1beta1.LastOperationTypeReconcile:
		return true
	}
	return false
}

// rotationIsOver reports whether a rotation has not begun or is complete.
func rotationIsOver(phase v1beta1.CredentialsRotationPhase) bool {
	return phase == "" || phase == v1beta1.RotationCompleted
}

// rotationOf returns the state of the credentials rotation of a Shoot. It is empty if there was no rotation.
func rotationOf(shoot *v1beta1.Shoot) *v1beta1.ShootCredentialsRotation {
	if shoot.Status.Credentials == nil || shoot.Status.Credentials.Rotation == nil {
		return &v1beta1.ShootCredentialsRotation{}
	}
	return shoot.Status.Credentials.Rotation
}

func caPhase(shoot *v1beta1.Shoot) v1beta1.CredentialsRotationPhase {
	if rotation := rotationOf(shoot).CertificateAuthorities; rotation != nil {
		return rotation.Phase
	}
	return ""
}

func serviceAccountKeyPhase(shoot *v1beta1.Shoot) v1beta1.CredentialsRotationPhase {
	if rotation := rotationOf(shoot).ServiceAccountKey; rotation != nil {
		return rotation.Phase
	}
	return ""
}

func etcdKeyPhase(shoot *v1beta1.Shoot) v1beta1.CredentialsRotationPhase {
	if rotation := rotationOf(shoot).ETCDEncryptionKey; rotation != nil {
		return rotation.Phase
	}
	return ""
}

// pendingInPlaceUpdates returns the names of the worker pools that wait for an in-place update.
func pendingInPlaceUpdates(shoot *v1beta1.Shoot) []string {
	if shoot.Status.InPlaceUpdates == nil || shoot.Status.InPlaceUpdates.PendingWorkerUpdates == nil {
		return nil
	}
	pending := shoot.Status.InPlaceUpdates.PendingWorkerUpdates
	return slices.Concat(pending.AutoInPlaceUpdate, pending.ManualInPlaceUpdate)
}
