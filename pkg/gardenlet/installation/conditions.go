package installation

import (
	"errors"
	"net/url"
	"time"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// Reasons of conditions, which are Gardener's.
const (
	reasonValid                = "RegistrationValid"
	reasonRegistrationNotFound = "RegistrationNotFound"
	reasonSeedNotFound         = "SeedNotFound"
	reasonChartInformation     = "ChartInformationInvalid"
	reasonValues               = "RenderingHelmValuesFailed"
	reasonPull                 = "OCIChartCannotBePulled"
	reasonRender               = "ChartCannotBeRendered"

	reasonInstalled         = "InstallationSuccessful"
	reasonPending           = "InstallationPending"
	reasonFailed            = "InstallationFailed"
	reasonDeletionPending   = "DeletionPending"
	reasonDeletionFailed    = "DeletionFailed"
	reasonDeletionSucceeded = "DeletionSuccessful"

	reasonHealthy      = "ControllerHealthy"
	reasonNotHealthy   = "ControllerNotHealthy"
	reasonRolledOut    = "ControllerRolledOut"
	reasonNotRolledOut = "ControllerNotRolledOut"

	reasonObjectsExist = "ExtensionObjectsExist"
	reasonNoObjects    = "NoExtensionObjects"
)

// maxMessage limits the length of a condition's message in bytes.
const maxMessage = 2000

// finding is the content of a condition.
type finding struct {
	kind            corev1beta1.ConditionType
	status          corev1beta1.ConditionStatus
	reason, message string
}

// update sets the conditions of findings. Timestamps change only with the content.
func update(conditions []corev1beta1.Condition, findings []finding, now time.Time) []corev1beta1.Condition {
	for _, f := range findings {
		next := corev1beta1.Condition{Type: f.kind, Status: f.status, Reason: f.reason, Message: limit(f.message)}
		conditions = corev1beta1.SetCondition(conditions, corev1beta1.KeepTimes(corev1beta1.FindCondition(conditions, f.kind), next, now))
	}
	return conditions
}

// limit truncates a message to maxMessage bytes.
func limit(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	end := maxMessage
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

// notEmitted returns the findings if the ManagedResource could not be written. What runs in the seed is not known, so the other
// conditions remain. Errors that the next attempt may resolve, such as a conflict or an API server that does not respond, are not
// reported. text is the message of the error.
func notEmitted(valid finding, err error, text string) []finding {
	var unanswered *url.Error
	if errors.As(err, &unanswered) || apierrors.IsConflict(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) {
		return []finding{valid}
	}
	return []finding{valid, {corev1beta1.ControllerInstallationInstalled, corev1beta1.ConditionFalse, reasonFailed, text}}
}

// findingsOf returns whether an extension is installed, healthy and progressing, from its ManagedResource. why is the
// reason why the bundle could not be written, or empty.
func findingsOf(mr *resourcesv1alpha1.ManagedResource, why string) []finding {
	const (
		installed   = corev1beta1.ControllerInstallationInstalled
		healthy     = corev1beta1.ControllerInstallationHealthy
		progressing = corev1beta1.ControllerInstallationProgressing
	)
	if mr == nil {
		found := []finding{
			{installed, corev1beta1.ConditionFalse, reasonPending, "The ManagedResource of the extension does not exist yet."},
			{healthy, corev1beta1.ConditionFalse, reasonNotHealthy, "The extension is not installed yet."},
			{progressing, corev1beta1.ConditionTrue, reasonNotRolledOut, "The extension is not installed yet."},
		}
		if why != "" {
			found[0].reason, found[0].message = reasonFailed, why
		}
		return found
	}
	found := make([]finding, 0, 3)
	applied := conditionOf(mr, resourcesv1alpha1.ResourcesApplied)
	switch {
	case why != "":
		found = append(found, finding{installed, corev1beta1.ConditionFalse, reasonFailed, why})
	case applied.Status == resourcesv1alpha1.ConditionTrue:
		found = append(found, finding{installed, corev1beta1.ConditionTrue, reasonInstalled, "The extension is installed in the seed."})
	default:
		found = append(found, finding{installed, corev1beta1.ConditionFalse, reasonPending, applied.Message})
	}
	if checked := conditionOf(mr, resourcesv1alpha1.ResourcesHealthy); checked.Status == resourcesv1alpha1.ConditionTrue {
		found = append(found, finding{healthy, corev1beta1.ConditionTrue, reasonHealthy, "The extension is healthy."})
	} else {
		found = append(found, finding{healthy, corev1beta1.ConditionFalse, reasonNotHealthy, checked.Message})
	}
	rolling := conditionOf(mr, resourcesv1alpha1.ResourcesProgressing)
	if rolling.Status == resourcesv1alpha1.ConditionFalse {
		return append(found, finding{progressing, corev1beta1.ConditionFalse, reasonRolledOut, "The extension is rolled out."})
	}
	return append(found, finding{progressing, corev1beta1.ConditionTrue, reasonNotRolledOut, rolling.Message})
}

// condition is a condition of a ManagedResource.
type condition struct {
	Status  resourcesv1alpha1.ConditionStatus
	Message string
}

// conditionOf returns a condition of a ManagedResource for its current generation. It is unknown until the generation is observed.
func conditionOf(mr *resourcesv1alpha1.ManagedResource, kind resourcesv1alpha1.ConditionType) condition {
	if mr.Status.ObservedGeneration != mr.Generation {
		return condition{resourcesv1alpha1.ConditionUnknown, "The resource-manager has not observed the current revision yet."}
	}
	found := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, kind)
	if found.Message == "" {
		found.Message = "The resource-manager has not reported the condition " + string(kind) + " yet."
	}
	return condition{found.Status, found.Message}
}

// requiredFinding returns the condition Required. id lists the kinds and types of the registration with extension objects.
func requiredFinding(id string) finding {
	if id == "" {
		return finding{
			corev1beta1.ControllerInstallationRequired, corev1beta1.ConditionFalse, reasonNoObjects,
			"No extension object in the seed has a kind and type of the registration.",
		}
	}
	return finding{
		corev1beta1.ControllerInstallationRequired, corev1beta1.ConditionTrue, reasonObjectsExist,
		"Extension objects exist in the seed, of the kind and type " + id + ".",
	}
}

// problemOf returns why the bundle of an extension could not be written, or an empty string.
func problemOf(result flow.Result, key flow.Key) string {
	if why := result.Problems[key]; why != "" {
		return why
	}
	return result.Pending[key]
}
