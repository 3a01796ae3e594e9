package installation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/conditiontext"
)

// Reasons of the condition ExtensionsReady, which are Gardener's.
const (
	reasonAllReady     = "AllExtensionsReady"
	reasonNotValid     = "NotAllExtensionsValid"
	reasonNotInstalled = "NotAllExtensionsInstalled"
	reasonNotHealthy   = "NotAllExtensionsHealthy"
	reasonProgressing  = "SomeExtensionsProgressing"
)

const (
	// maxNamed limits the number of extensions in a message.
	maxNamed = 10
	// maxDetail limits the length of an installation's message within a message, in bytes.
	maxDetail = 200
)

// problems are the kinds of problems of installations, most important first, with the beginning of the message.
var problems = []struct{ reason, text string }{
	{reasonNotValid, "Some extensions are not valid: "},
	{reasonNotInstalled, "Some extensions are not installed: "},
	{reasonNotHealthy, "Some extensions are not healthy: "},
	{reasonProgressing, "Some extensions are being rolled out: "},
}

// checked are the conditions of an installation that are evaluated, in order.
var checked = []struct {
	kind   corev1beta1.ConditionType
	wanted corev1beta1.ConditionStatus
	reason string
}{
	{corev1beta1.ControllerInstallationValid, corev1beta1.ConditionTrue, reasonNotValid},
	{corev1beta1.ControllerInstallationInstalled, corev1beta1.ConditionTrue, reasonNotInstalled},
	{corev1beta1.ControllerInstallationHealthy, corev1beta1.ConditionTrue, reasonNotHealthy},
	{corev1beta1.ControllerInstallationProgressing, corev1beta1.ConditionFalse, reasonProgressing},
}

// Ready returns the condition ExtensionsReady of a Seed with these installations. before is the current condition, or
// nil. A failure after a success is Progressing until the threshold has passed. Without a threshold it is False
// immediately. next is when the condition changes without an event, or zero for never.
func Ready(
	installations []*corev1beta1.ControllerInstallation, before *corev1beta1.Condition, threshold time.Duration, now time.Time,
) (condition corev1beta1.Condition, next time.Time) {
	condition = corev1beta1.Condition{
		Type: corev1beta1.SeedExtensionsReady, Status: corev1beta1.ConditionTrue, Reason: reasonAllReady,
		Message: "All extensions are installed and healthy.",
	}
	if len(installations) == 0 {
		condition.Message = "No extension is installed in the Seed."
	}
	if reason, message := worst(installations); reason != "" {
		condition.Reason, condition.Message = reason, message
		condition.Status, next = corev1beta1.DelayFailure(before, corev1beta1.ConditionFalse, threshold, now)
	}
	return corev1beta1.KeepTimes(before, condition, now), next
}

// worst returns the most important problem of installations, with the affected ones. It returns empty strings if all are ready.
func worst(installations []*corev1beta1.ControllerInstallation) (reason, message string) {
	found := map[string][]string{}
	for _, installation := range installations {
		reason, detail := problemOf(installation)
		text := installation.Spec.RegistrationRef.Name
		if detail != "" {
			text += " (" + conditiontext.Shorten(detail, maxDetail) + ")"
		}
		found[reason] = append(found[reason], text)
	}
	for _, problem := range problems {
		names := found[problem.reason]
		if len(names) == 0 {
			continue
		}
		slices.Sort(names)
		more := ""
		if len(names) > maxNamed {
			names, more = names[:maxNamed], fmt.Sprintf(" and %d more", len(names)-maxNamed)
		}
		return problem.reason, problem.text + strings.Join(names, ", ") + more
	}
	return "", ""
}

// problemOf returns the first problem of an installation and its message. The reason is empty if there is none.
func problemOf(installation *corev1beta1.ControllerInstallation) (reason, detail string) {
	if len(installation.Status.Conditions) == 0 {
		return reasonNotInstalled, "gardenlet has not observed it yet"
	}
	missing := ""
	for _, one := range checked {
		condition := corev1beta1.FindCondition(installation.Status.Conditions, one.kind)
		switch {
		case condition == nil:
			missing = cmp.Or(missing, "the condition "+string(one.kind)+" is missing")
		case condition.Status != one.wanted:
			return one.reason, condition.Message
		}
	}
	if missing != "" {
		return reasonNotHealthy, missing
	}
	return "", ""
}
