package validation

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// alone are the operations that cannot be executed together with others.
var alone = []string{constants.OperationMaintain, constants.OperationRetry, constants.OperationForceInPlaceUpdate}

// together are the other operations of a Shoot without parameters.
var together = []string{
	constants.OperationReconcile,
	constants.OperationRotateCredentialsStart, constants.OperationRotateCredentialsStartWithoutWorkersRollout,
	constants.OperationRotateCredentialsComplete,
	constants.OperationRotateCAStart, constants.OperationRotateCAStartWithoutWorkersRollout, constants.OperationRotateCAComplete,
	constants.OperationRotateServiceAccountKeyStart, constants.OperationRotateServiceAccountKeyStartWithoutWorkersRollout,
	constants.OperationRotateServiceAccountKeyComplete,
	constants.OperationRotateETCDEncryptionKey, constants.OperationRotateETCDEncryptionKeyStart,
	constants.OperationRotateETCDEncryptionKeyComplete,
	constants.OperationRotateObservabilityCredentials, constants.OperationRotateSSHKeypair,
}

// exclusive are pairs of operations that contradict each other.
var exclusive = [][2]string{
	{constants.OperationRotateCredentialsStart, constants.OperationRotateCredentialsStartWithoutWorkersRollout},
	{constants.OperationRotateCAStart, constants.OperationRotateCAStartWithoutWorkersRollout},
	{constants.OperationRotateServiceAccountKeyStart, constants.OperationRotateServiceAccountKeyStartWithoutWorkersRollout},
}

// SplitOperations returns the operations that an annotation of a Shoot requests, without blanks and duplicates.
func SplitOperations(value string) []string {
	var operations []string
	for operation := range strings.SplitSeq(value, ";") {
		if operation = strings.TrimSpace(operation); operation != "" && !slices.Contains(operations, operation) {
			operations = append(operations, operation)
		}
	}
	return operations
}

// Contradict reports whether operations include one that cannot be executed together with others.
func Contradict(operations []string) bool {
	return len(operations) > 1 && slices.ContainsFunc(operations, func(operation string) bool { return slices.Contains(alone, operation) })
}

// OperationAllowed returns an error if the state of a Shoot does not allow to request an operation now, in addition to others.
func OperationAllowed(shoot *v1beta1.Shoot, operation string, others []string) error {
	path := field.NewPath("metadata", "annotations").Key(constants.AnnotationGardenerOperation)
	errs := validateOperationSet(append(slices.Clone(others), operation), knownOperations(shoot), path)
	return append(errs, validateOperation(operation, shoot, path)...).ToAggregate()
}

// knownOperations returns the operations without parameters that a Shoot can have.
func knownOperations(shoot *v1beta1.Shoot) []string {
	known := slices.Concat(together, alone)
	if len(shoot.Spec.Provider.Workers) == 0 { // the API server drops the operation, as there is no key
		known = slices.DeleteFunc(known, func(one string) bool { return one == constants.OperationRotateSSHKeypair })
	}
	return known
}

// validateOperations checks the operations that the annotations of a Shoot newly request. Pending operations were checked
// when they were requested.
func validateOperations(shoot, old *v1beta1.Shoot) field.ErrorList {
	const now, later = constants.AnnotationGardenerOperation, constants.AnnotationMaintenanceOperation
	if shoot.Annotations[now] == old.Annotations[now] && shoot.Annotations[later] == old.Annotations[later] {
		return nil
	}
	path := field.NewPath("metadata", "annotations")
	atOnce, inWindow := SplitOperations(shoot.Annotations[now]), SplitOperations(shoot.Annotations[later])
	known := knownOperations(shoot)
	errs := validateOperationSet(atOnce, known, path.Key(now))
	errs = append(errs, validateOperationSet(inWindow, known, path.Key(later))...)
	for _, operation := range inWindow {
		errs = append(errs, forbidden(slices.Contains(atOnce, operation), path.Key(later),
			fmt.Sprintf("operation %q must not be in both annotations", operation))...)
	}
	for annotation, operations := range map[string][]string{now: atOnce, later: inWindow} {
		before := SplitOperations(old.Annotations[annotation])
		for _, operation := range operations {
			if !slices.Contains(before, operation) {
				errs = append(errs, validateOperation(operation, shoot, path.Key(annotation))...)
			}
		}
	}
	return errs
}

// validateOperationSet checks that operations are known and can be executed together.
func validateOperationSet(operations, known []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, operation := range operations {
		name, _, _ := strings.Cut(operation, "=")
		rollout := name == constants.OperationRolloutWorkers || name == constants.OperationRotateRolloutWorkers
		if !rollout && !slices.Contains(known, operation) {
			errs = append(errs, field.NotSupported(path, operation, known))
		}
		errs = append(errs, forbidden(len(operations) > 1 && slices.Contains(alone, operation), path,
			fmt.Sprintf("operation %q is not permitted to be run in parallel with other operations", operation))...)
	}
	for _, pair := range exclusive {
		errs = append(errs, forbidden(slices.Contains(operations, pair[0]) && slices.Contains(operations, pair[1]), path,
			fmt.Sprintf("operations %q and %q exclude each other", pair[0], pair[1]))...)
	}
	return errs
}

// validateOperation checks that the state of a Shoot allows an operation.
func validateOperation(operation string, shoot *v1beta1.Shoot, path *field.Path) field.ErrorList {
	name, pools, _ := strings.Cut(operation, "=")
	errs := forbidden(hibernated(shoot) && awakeOnly(name), path, fmt.Sprintf("operation %q is not permitted when shoot is hibernated", name))
	ca, serviceAccountKey, etcdKey := caPhase(shoot), serviceAccountKeyPhase(shoot), etcdKeyPhase(shoot)
	c := contextOf(&shoot.Spec, shoot.Namespace, false)
	switch name {
	case constants.OperationRotateCredentialsStart, constants.OperationRotateCredentialsStartWithoutWorkersRollout:
		errs = append(errs, canStart(name, shoot, true, path, ca, serviceAccountKey, etcdKey)...)
	case constants.OperationRotateCredentialsComplete:
		phases := []v1beta1.CredentialsRotationPhase{ca, serviceAccountKey}
		if !c.atLeast("1.34") {
			phases = append(phases, etcdKey) // later versions complete it automatically
		}
		errs = append(errs, canComplete(name, path, phases...)...)
	case constants.OperationRotateCAStart, constants.OperationRotateCAStartWithoutWorkersRollout:
		errs = append(errs, canStart(name, shoot, true, path, ca)...)
	case constants.OperationRotateCAComplete:
		errs = append(errs, canComplete(name, path, ca)...)
	case constants.OperationRotateServiceAccountKeyStart, constants.OperationRotateServiceAccountKeyStartWithoutWorkersRollout:
		errs = append(errs, canStart(name, shoot, true, path, serviceAccountKey)...)
	case constants.OperationRotateServiceAccountKeyComplete:
		errs = append(errs, canComplete(name, path, serviceAccountKey)...)
	case constants.OperationRotateETCDEncryptionKey:
		errs = append(errs, canStart(name, shoot, false, path, etcdKey)...)
	case constants.OperationRotateETCDEncryptionKeyStart:
		errs = append(errs, c.removed(true, "1.34", path)...)
		errs = append(errs, canStart(name, shoot, false, path, etcdKey)...)
	case constants.OperationRotateETCDEncryptionKeyComplete:
		errs = append(errs, c.removed(true, "1.34", path)...)
		errs = append(errs, canComplete(name, path, etcdKey)...)
	case constants.OperationRotateRolloutWorkers:
		waits := ca == v1beta1.RotationWaitingForWorkersRollout || serviceAccountKey == v1beta1.RotationWaitingForWorkersRollout
		errs = append(errs, forbidden(!waits, path, "either .status.credentials.rotation.certificateAuthorities.phase or "+
			".status.credentials.rotation.serviceAccountKey.phase must be in 'WaitingForWorkersRollout' in order to trigger workers rollout")...)
		errs = append(errs, validatePoolList(pools, name, shoot, path)...)
	case constants.OperationRolloutWorkers:
		errs = append(errs, validatePoolList(pools, name, shoot, path)...)
	}
	return errs
}

// awakeOnly reports whether an operation needs a cluster that is not hibernated.
func awakeOnly(operation string) bool {
	return slices.ContainsFunc([]string{
		"rotate-credentials-", constants.OperationRotateETCDEncryptionKey, "rotate-serviceaccount-key-",
		constants.OperationRolloutWorkers, constants.OperationRotateRolloutWorkers,
	}, func(prefix string) bool { return strings.HasPrefix(operation, prefix) })
}

// rewrites reports whether an operation starts to encrypt all encrypted resources again.
func rewrites(operation string) bool {
	switch operation {
	case constants.OperationRotateCredentialsStart, constants.OperationRotateCredentialsStartWithoutWorkersRollout,
		constants.OperationRotateETCDEncryptionKey, constants.OperationRotateETCDEncryptionKeyStart:
		return true
	}
	return false
}

// canStart checks that rotations with the given phases can start. Rotations that roll out worker pools wait for in-place
// updates.
func canStart(
	operation string, shoot *v1beta1.Shoot, rollsOut bool, path *field.Path, phases ...v1beta1.CredentialsRotationPhase,
) field.ErrorList {
	errs := forbidden(!canStartRotation(shoot.Status.LastOperation), path,
		fmt.Sprintf("cannot start %s if shoot was not yet created successfully or is not ready for reconciliation", operation))
	over := !slices.ContainsFunc(phases, func(phase v1beta1.CredentialsRotationPhase) bool { return !rotationIsOver(phase) })
	errs = append(errs, forbidden(!over, path,
		fmt.Sprintf("cannot start %s if .status.credentials.rotation has a phase other than 'Completed'", operation))...)
	errs = append(errs, forbidden(rewrites(operation) && !encryptionIsRolledOut(shoot), path,
		fmt.Sprintf("cannot start %s because a previous change of the encryption is being rolled out", operation))...)
	return append(errs, forbidden(rollsOut && len(pendingInPlaceUpdates(shoot)) > 0, path,
		fmt.Sprintf("cannot start %s while worker pools wait for in-place updates", operation))...)
}

func canComplete(operation string, path *field.Path, phases ...v1beta1.CredentialsRotationPhase) field.ErrorList {
	prepared := !slices.ContainsFunc(phases, func(phase v1beta1.CredentialsRotationPhase) bool { return phase != v1beta1.RotationPrepared })
	return forbidden(!prepared, path,
		fmt.Sprintf("cannot complete %s if .status.credentials.rotation has a phase other than 'Prepared'", operation))
}

// validatePoolList checks the names of worker pools that are rolled out. A * alone stands for all pools of a manual roll-out.
func validatePoolList(list, operation string, shoot *v1beta1.Shoot, path *field.Path) field.ErrorList {
	manual := operation == constants.OperationRolloutWorkers
	if list == "" {
		return field.ErrorList{field.Required(path,
			fmt.Sprintf("must provide at least one pool name via %s=<poolName1>[,<poolName2>,...]", operation))}
	}
	names := strings.Split(list, ",")
	if manual && list == "*" {
		names = nil
		for i := range shoot.Spec.Provider.Workers {
			names = append(names, shoot.Spec.Provider.Workers[i].Name)
		}
	}
	errs := forbidden(manual && selfHosted(&shoot.Spec) && shoot.Spec.CredentialsBindingName == nil, path,
		"the machines of a self-hosted Shoot without spec.credentialsBindingName cannot be replaced")
	for n, name := range names {
		if slices.Contains(names[:n], name) {
			errs = append(errs, field.Duplicate(path, name))
		}
		i := slices.IndexFunc(shoot.Spec.Provider.Workers, func(worker v1beta1.Worker) bool { return worker.Name == name })
		if i < 0 {
			errs = append(errs, field.Invalid(path, name, "is not the name of a worker pool"))
			continue
		}
		errs = append(errs, forbidden(manual && v1beta1.IsUpdateStrategyInPlace(shoot.Spec.Provider.Workers[i].UpdateStrategy), path,
			fmt.Sprintf("worker pool %q is updated in place and cannot be rolled out", name))...)
	}
	return errs
}

// forceDeletable are the error codes with which a deletion may be forced.
var forceDeletable = []v1beta1.ErrorCode{
	v1beta1.ErrorInfraUnauthenticated, v1beta1.ErrorInfraUnauthorized, v1beta1.ErrorInfraDependencies,
	v1beta1.ErrorCleanupClusterResources, v1beta1.ErrorConfigurationProblem,
}

// validateForceDeletion checks that a deletion is forced only if it fails for a reason that the user cannot fix, and that
// the request is not withdrawn.
func validateForceDeletion(shoot, old *v1beta1.Shoot) field.ErrorList {
	const annotation = constants.AnnotationConfirmationForceDeletion
	now, before := resourcesv1alpha1.Truthy(shoot.Annotations[annotation]), resourcesv1alpha1.Truthy(old.Annotations[annotation])
	path := field.NewPath("metadata", "annotations").Key(annotation)
	switch {
	case before && !now:
		return field.ErrorList{field.Forbidden(path, "force-deletion annotation cannot be removed once set")}
	case before || !now:
		return nil
	case shoot.DeletionTimestamp == nil:
		return field.ErrorList{field.Forbidden(path, "force-deletion annotation cannot be set when Shoot deletionTimestamp is nil")}
	}
	hasCode := slices.ContainsFunc(shoot.Status.LastErrors, func(err v1beta1.LastError) bool {
		return slices.ContainsFunc(err.Codes, func(code v1beta1.ErrorCode) bool { return slices.Contains(forceDeletable, code) })
	})
	return forbidden(!hasCode, path, fmt.Sprintf(
		"force-deletion annotation can only be set if the Shoot status contains one of these error codes: %v", forceDeletable))
}
