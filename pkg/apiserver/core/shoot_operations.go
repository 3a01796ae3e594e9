package core

import (
	"strings"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/apis/core/validation"
	"github.com/trellis-k8s/trellis/pkg/apiserver/registry"
)

const operationSeparator = ";"

// covered maps a rotation of all credentials to the single rotations that it includes.
var covered = map[string][]string{
	constants.OperationRotateCredentialsStart:                      startedRotations,
	constants.OperationRotateCredentialsStartWithoutWorkersRollout: startedRotations,
	constants.OperationRotateCredentialsComplete: {
		constants.OperationRotateCAComplete, constants.OperationRotateServiceAccountKeyComplete,
		constants.OperationRotateETCDEncryptionKeyComplete,
	},
}

var startedRotations = []string{
	constants.OperationRotateCAStart, constants.OperationRotateCAStartWithoutWorkersRollout,
	constants.OperationRotateServiceAccountKeyStart, constants.OperationRotateServiceAccountKeyStartWithoutWorkersRollout,
	constants.OperationRotateETCDEncryptionKey, constants.OperationRotateETCDEncryptionKeyStart,
	constants.OperationRotateObservabilityCredentials, constants.OperationRotateSSHKeypair,
}

// tidyOperations removes blanks and duplicates from the annotations that request operations.
func tidyOperations(s shoot) {
	for _, annotation := range []string{constants.AnnotationGardenerOperation, constants.AnnotationMaintenanceOperation} {
		if value, found := s.Annotations[annotation]; found {
			setOperations(s, annotation, validation.SplitOperations(value))
		}
	}
}

func setOperations(s shoot, annotation string, operations []string) {
	if len(operations) == 0 {
		delete(s.Annotations, annotation)
		return
	}
	s.Annotations[annotation] = strings.Join(operations, operationSeparator)
}

// shootGenerationChanges reports whether an update of a Shoot increases its generation. It removes the operations that
// are completed by that.
func shootGenerationChanges(updated, old shoot) bool {
	asked := operationsRequested(updated)
	return asked || specRolledOut(updated, old) || registry.TurnsTrue(updated, old, constants.AnnotationConfirmationForceDeletion)
}

// specRolledOut reports whether a change of the specification takes effect immediately. If changes are confined to the
// maintenance window, only hibernation and wake-up do.
func specRolledOut(updated, old shoot) bool {
	maintenance := updated.Spec.Maintenance
	if maintenance != nil && maintenance.ConfineSpecUpdateRollout != nil && *maintenance.ConfineSpecUpdateRollout {
		return hibernationWanted(updated) != hibernationWanted(old)
	}
	return differ(updated.Spec, old.Spec)
}

// operationsRequested reports whether the annotation gardener.cloud/operation requests an operation of the gardenlet. It
// removes operations that the gardenlet does not need to see. A Shoot without a last operation is about to be created
// anyway.
func operationsRequested(s shoot) bool {
	value, found := s.Annotations[constants.AnnotationGardenerOperation]
	if !found || s.Status.LastOperation == nil {
		return false
	}
	if s.Status.LastOperation.State == gardencorev1beta1.LastOperationStateFailed {
		if value != constants.OperationRetry {
			return false
		}
		delete(s.Annotations, constants.AnnotationGardenerOperation)
		return true
	}
	operations := validation.SplitOperations(value)
	if validation.Contradict(operations) {
		return false // validation reports them
	}
	kept, asked := evaluateOperations(operations, sshAccess(s))
	setOperations(s, constants.AnnotationGardenerOperation, kept)
	return asked
}

// evaluateOperations returns the operations to keep for the gardenlet, and whether one of all operations increases the
// generation.
func evaluateOperations(operations []string, sshAccess bool) (kept []string, asked bool) {
	swallowed := map[string]bool{}
	for _, operation := range operations {
		for _, single := range covered[operation] {
			swallowed[single] = true
		}
	}
	for _, operation := range operations {
		switch {
		case swallowed[operation], operation == constants.OperationRotateSSHKeypair && !sshAccess:
			continue
		case operation == constants.OperationReconcile:
			asked = true
			continue
		case strings.HasPrefix(operation, "rotate-"), strings.HasPrefix(operation, constants.OperationRolloutWorkers):
			asked = true
		}
		kept = append(kept, operation)
	}
	return kept, asked
}

// sshAccess reports whether the nodes of a Shoot accept SSH connections, which is the default.
func sshAccess(s shoot) bool {
	if len(s.Spec.Provider.Workers) == 0 {
		return false
	}
	settings := s.Spec.Provider.WorkersSettings
	return settings == nil || settings.SSHAccess == nil || settings.SSHAccess.Enabled
}

// shootStatusGenerationChanges makes the gardenlet reconcile a Shoot again when its migration has ended on the old Seed,
// or when its rotation of the encryption key continues automatically.
func shootStatusGenerationChanges(updated, old shoot) bool {
	if migrated(updated) && !migrated(old) {
		return true
	}
	return prepared(updated) && !prepared(old)
}

func migrated(s shoot) bool {
	operation := s.Status.LastOperation
	return operation != nil && operation.Type == gardencorev1beta1.LastOperationTypeMigrate &&
		(operation.State == gardencorev1beta1.LastOperationStateSucceeded || operation.State == gardencorev1beta1.LastOperationStateAborted)
}

func prepared(s shoot) bool {
	if s.Status.Credentials == nil || s.Status.Credentials.Rotation == nil {
		return false
	}
	rotation := s.Status.Credentials.Rotation.ETCDEncryptionKey
	return rotation != nil && rotation.Phase == gardencorev1beta1.RotationPrepared &&
		rotation.AutoCompleteAfterPrepared != nil && *rotation.AutoCompleteAfterPrepared
}
