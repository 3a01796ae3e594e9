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

// Reasons of the condition ExtensionsReady, as Gardener has them.
const (
	reasonAllReady     = "AllExtensionsReady"
	reasonNotValid     = "NotAllExtensionsValid"
	reasonNotInstalled = "NotAllExtensionsInstalled"
	reasonNotHealthy   = "NotAllExtensionsHealthy"
	reasonProgressing  = "SomeExtensionsProgressing"
)

const (
	// maxNamed is how many extensions a message names at most.
	maxNamed = 10
	// maxSaid is how many bytes of what an installation reports a message has at most.
	maxSaid = 200
)

// problems are those of an installation, the most important first, with how a message begins.
var problems = []struct{ reason, text string }{
	{reasonNotValid, "Some extensions are not valid: "},
	{reasonNotInstalled, "Some extensions are not installed: "},
	{reasonNotHealthy, "Some extensions are not healthy: "},
	{reasonProgressing, "Some extensions are being rolled out: "},
}

// checked are the conditions of an installation that count, in the order in which they are looked at.
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

// Ready returns the condition ExtensionsReady of a Seed with these installations. before is the present condition; nil if the Seed does not have it yet. A failure
// after success is Progressing until it has lasted for the threshold, at once False if that is 0. next is when the condition changes
// without an event; zero for never.
func Ready(installations []*corev1beta1.ControllerInstallation, before *corev1beta1.Condition, threshold time.Duration, now time.Time) (condition corev1beta1.Condition, next time.Time) {
	condition = corev1beta1.Condition{Type: corev1beta1.SeedExtensionsReady, Status: corev1beta1.ConditionTrue, Reason: reasonAllReady, Message: "All extensions are installed and healthy."}
	if len(installations) == 0 {
		condition.Message = "No extension is installed in the Seed."
	}
	if reason, message := worst(installations); reason != "" {
		condition.Reason, condition.Message = reason, message
		condition.Status, next = statusOfFailure(before, threshold, now)
	}
	return corev1beta1.KeepTimes(before, condition, now), next
}

// statusOfFailure returns Progressing while a failure is younger than the threshold, and when that ends.
func statusOfFailure(before *corev1beta1.Condition, threshold time.Duration, now time.Time) (corev1beta1.ConditionStatus, time.Time) {
	if before == nil || threshold <= 0 {
		return corev1beta1.ConditionFalse, time.Time{}
	}
	switch before.Status {
	case corev1beta1.ConditionTrue:
		return corev1beta1.ConditionProgressing, now.Add(threshold)
	case corev1beta1.ConditionProgressing:
		if until := before.LastTransitionTime.Add(threshold); now.Before(until) {
			return corev1beta1.ConditionProgressing, until
		}
	}
	return corev1beta1.ConditionFalse, time.Time{}
}

// worst returns the most important problem of installations, and which of them have it; empty if all are ready.
func worst(installations []*corev1beta1.ControllerInstallation) (reason, message string) {
	found := map[string][]string{}
	for _, installation := range installations {
		reason, said := problemOf(installation)
		text := installation.Spec.RegistrationRef.Name
		if said != "" {
			text += " (" + conditiontext.Shorten(said, maxSaid) + ")"
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

// problemOf returns what is wrong with an installation first, and what it says about that; an empty reason if nothing is.
func problemOf(installation *corev1beta1.ControllerInstallation) (reason, said string) {
	if len(installation.Status.Conditions) == 0 {
		return reasonNotInstalled, "gardenlet has not looked at it yet"
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
