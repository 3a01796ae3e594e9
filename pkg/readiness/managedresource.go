// Package readiness says whether ManagedResources are ready, for the conditions of Seeds and Shoots.
package readiness

import (
	"fmt"
	"slices"
	"strings"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// maxNamed is how many ManagedResources a message names, and maxText how many bytes it says about each.
const (
	maxNamed = 10
	maxText  = 300
)

// Problem is why a ManagedResource is not ready: a reason and codes for a condition, and a message that begins with its name.
type Problem struct {
	Reason, Message string
	Codes           []corev1beta1.ErrorCode
}

// Check returns why a ManagedResource is not applied, healthy and rolled out; nil if it is.
func Check(mr *resourcesv1alpha1.ManagedResource) *Problem {
	name := fmt.Sprintf("ManagedResource %s/%s", mr.Namespace, mr.Name)
	if mr.Status.ObservedGeneration != mr.Generation {
		return &Problem{Reason: corev1beta1.ReasonOutdatedStatus, Message: fmt.Sprintf("%s: generation %d has not been observed", name, mr.Generation)}
	}
	for _, wanted := range []struct {
		kind   resourcesv1alpha1.ConditionType
		status resourcesv1alpha1.ConditionStatus
	}{
		{resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ConditionTrue},
		{resourcesv1alpha1.ResourcesHealthy, resourcesv1alpha1.ConditionTrue},
		{resourcesv1alpha1.ResourcesProgressing, resourcesv1alpha1.ConditionFalse},
	} {
		at := slices.IndexFunc(mr.Status.Conditions, func(condition resourcesv1alpha1.Condition) bool { return condition.Type == wanted.kind })
		if at < 0 {
			return &Problem{Reason: corev1beta1.ReasonMissingManagedResourceCondition, Message: fmt.Sprintf("%s has no condition %s", name, wanted.kind)}
		}
		condition := mr.Status.Conditions[at]
		if condition.Status == wanted.status {
			continue
		}
		found := &Problem{Reason: condition.Reason, Message: fmt.Sprintf("%s: %s", name, condition.Message)}
		for _, code := range condition.Codes {
			found.Codes = append(found.Codes, corev1beta1.ErrorCode(code))
		}
		return found
	}
	return nil
}

// CheckAll returns why ManagedResources are not applied, healthy and rolled out: the reason of the first that is not, the messages of up to ten, and
// all codes, sorted; nil if all are.
func CheckAll(all []resourcesv1alpha1.ManagedResource) *Problem {
	var result *Problem
	var texts []string
	for i := range all {
		found := Check(&all[i])
		switch {
		case found == nil:
			continue
		case result == nil:
			result = &Problem{Reason: found.Reason}
		}
		result.Codes = append(result.Codes, found.Codes...)
		texts = append(texts, Limited(found.Message))
	}
	if result == nil {
		return nil
	}
	if more := len(texts) - maxNamed; more > 0 {
		texts = append(texts[:maxNamed], fmt.Sprintf("and %d more", more))
	}
	slices.Sort(result.Codes)
	result.Message, result.Codes = strings.Join(texts, "; "), slices.Compact(result.Codes)
	return result
}

// Limited returns the beginning of a text that is too long for a condition.
func Limited(text string) string {
	if len(text) > maxText {
		return strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	return text
}
