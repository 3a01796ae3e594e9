package validation

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	corevalidation "github.com/trellis-k8s/trellis/pkg/apis/core/validation"
	"github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
)

// firstWithoutSteps is the first version of Kubernetes in which the rotation of the encryption key completes by itself.
const firstWithoutSteps = "1.34.0"

// operations are the operations of a Garden.
var operations = []string{
	constants.OperationReconcile,
	constants.OperationRotateCredentialsStart, constants.OperationRotateCredentialsComplete,
	constants.OperationRotateCAStart, constants.OperationRotateCAComplete,
	constants.OperationRotateServiceAccountKeyStart, constants.OperationRotateServiceAccountKeyComplete,
	constants.OperationRotateETCDEncryptionKey, constants.OperationRotateETCDEncryptionKeyStart, constants.OperationRotateETCDEncryptionKeyComplete,
	constants.OperationRotateObservabilityCredentials,
	constants.OperationRotateWorkloadIdentityKeyStart, constants.OperationRotateWorkloadIdentityKeyComplete,
}

// phases are the phases of the rotations of a Garden's credentials.
type phases struct {
	ca, serviceAccountKey, etcdKey, workloadIdentityKey corev1beta1.CredentialsRotationPhase
}

func phasesOf(garden *v1alpha1.Garden) phases {
	var found phases
	if garden.Status.Credentials == nil || garden.Status.Credentials.Rotation == nil {
		return found
	}
	rotation := garden.Status.Credentials.Rotation
	if rotation.CertificateAuthorities != nil {
		found.ca = rotation.CertificateAuthorities.Phase
	}
	if rotation.ServiceAccountKey != nil {
		found.serviceAccountKey = rotation.ServiceAccountKey.Phase
	}
	if rotation.ETCDEncryptionKey != nil {
		found.etcdKey = rotation.ETCDEncryptionKey.Phase
	}
	if rotation.WorkloadIdentityKey != nil {
		found.workloadIdentityKey = rotation.WorkloadIdentityKey.Phase
	}
	return found
}

// isOver reports whether a rotation has not begun or is complete.
func isOver(phase corev1beta1.CredentialsRotationPhase) bool {
	return phase == "" || phase == corev1beta1.RotationCompleted
}

// validateOperations checks the operations that the annotation of a Garden newly requests. Pending ones were checked when they were
// requested. old is nil for a new Garden.
func validateOperations(garden, old *v1alpha1.Garden) field.ErrorList {
	value := garden.Annotations[constants.AnnotationGardenerOperation]
	if value == "" || old != nil && old.Annotations[constants.AnnotationGardenerOperation] == value {
		return nil
	}
	path := field.NewPath("metadata", "annotations").Key(constants.AnnotationGardenerOperation)
	requested := corevalidation.SplitOperations(value)
	var errs field.ErrorList
	for _, operation := range requested {
		if !slices.Contains(operations, operation) {
			errs = append(errs, field.NotSupported(path, operation, operations))
			continue
		}
		errs = append(errs, validateOperation(operation, garden, path)...)
	}
	return append(errs, validateTogether(requested, path)...)
}

// validateTogether checks that no credential shall be rotated by two operations at the same time.
func validateTogether(requested []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, one := range requested {
		for _, other := range requested[:i] {
			if a, b := credentialOf(one), credentialOf(other); a != "" && b != "" && (a == b || a == "credentials" || b == "credentials") {
				errs = append(errs, field.Forbidden(path, fmt.Sprintf("operations %q and %q exclude each other", other, one)))
			}
		}
	}
	return errs
}

// credentialOf returns the credential that an operation rotates: "credentials" for all, and an empty string for none.
func credentialOf(operation string) string {
	name, rotates := strings.CutPrefix(operation, "rotate-")
	if !rotates {
		return ""
	}
	name = strings.TrimSuffix(strings.TrimSuffix(name, "-start"), "-complete")
	if operation == constants.OperationRotateObservabilityCredentials {
		return "observability"
	}
	return name
}

// validateOperation checks that the state of a Garden allows an operation.
func validateOperation(operation string, garden *v1alpha1.Garden, path *field.Path) field.ErrorList {
	if credentialOf(operation) == "" {
		return nil
	}
	var errs field.ErrorList
	if garden.DeletionTimestamp != nil {
		errs = append(errs, field.Forbidden(path, fmt.Sprintf("operation %q is not permitted while the garden is being deleted", operation)))
	}
	is := phasesOf(garden)
	steps := bySteps(garden.Spec.VirtualCluster.Kubernetes.Version)
	switch operation {
	case constants.OperationRotateCredentialsStart:
		errs = append(errs, canStart(operation, path, is.ca, is.serviceAccountKey, is.etcdKey, is.workloadIdentityKey)...)
	case constants.OperationRotateCredentialsComplete:
		needed := []corev1beta1.CredentialsRotationPhase{is.ca, is.serviceAccountKey, is.workloadIdentityKey}
		if steps {
			needed = append(needed, is.etcdKey)
		}
		errs = append(errs, canComplete(operation, path, needed...)...)
	case constants.OperationRotateCAStart:
		errs = append(errs, canStart(operation, path, is.ca)...)
	case constants.OperationRotateCAComplete:
		errs = append(errs, canComplete(operation, path, is.ca)...)
	case constants.OperationRotateServiceAccountKeyStart:
		errs = append(errs, canStart(operation, path, is.serviceAccountKey)...)
	case constants.OperationRotateServiceAccountKeyComplete:
		errs = append(errs, canComplete(operation, path, is.serviceAccountKey)...)
	case constants.OperationRotateWorkloadIdentityKeyStart:
		errs = append(errs, canStart(operation, path, is.workloadIdentityKey)...)
	case constants.OperationRotateWorkloadIdentityKeyComplete:
		errs = append(errs, canComplete(operation, path, is.workloadIdentityKey)...)
	case constants.OperationRotateETCDEncryptionKey:
		errs = append(errs, canStart(operation, path, is.etcdKey)...)
	case constants.OperationRotateETCDEncryptionKeyStart, constants.OperationRotateETCDEncryptionKeyComplete:
		switch {
		case !steps:
			errs = append(errs, field.Forbidden(path, fmt.Sprintf("operation %q is not supported from Kubernetes 1.34 on: use %q",
				operation, constants.OperationRotateETCDEncryptionKey)))
		case operation == constants.OperationRotateETCDEncryptionKeyStart:
			errs = append(errs, canStart(operation, path, is.etcdKey)...)
		default:
			errs = append(errs, canComplete(operation, path, is.etcdKey)...)
		}
	}
	return errs
}

// bySteps reports whether the encryption key is rotated by two operations in a version of Kubernetes.
func bySteps(kubernetes string) bool {
	parsed, err := version.ParseGeneric(kubernetes)
	return err == nil && parsed.LessThan(version.MustParseGeneric(firstWithoutSteps))
}

func canStart(operation string, path *field.Path, phases ...corev1beta1.CredentialsRotationPhase) field.ErrorList {
	for _, phase := range phases {
		if !isOver(phase) {
			return field.ErrorList{field.Forbidden(path, fmt.Sprintf(
				"cannot start %s if .status.credentials.rotation has a phase other than 'Completed'", operation))}
		}
	}
	return nil
}

func canComplete(operation string, path *field.Path, phases ...corev1beta1.CredentialsRotationPhase) field.ErrorList {
	for _, phase := range phases {
		if phase != corev1beta1.RotationPrepared {
			return field.ErrorList{field.Forbidden(path, fmt.Sprintf(
				"cannot complete %s if .status.credentials.rotation has a phase other than 'Prepared'", operation))}
		}
	}
	return nil
}
