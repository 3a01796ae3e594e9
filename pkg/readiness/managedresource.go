// Package readiness checks whether ManagedResources are ready, for the conditions of Seeds and Shoots.
package readiness

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// maxNamed is the maximum number of ManagedResources in a message, and maxText the maximum length of the text about
// each in bytes.
const (
	maxNamed = 10
	maxText  = 300
)

// Problem describes why a ManagedResource is not ready: a reason and codes for a condition, and a message that starts
// with its name.
type Problem struct {
	Reason, Message string
	Codes           []corev1beta1.ErrorCode
}

// Rollout defines how long a rollout of a ManagedResource may take before it is a problem. The zero value allows no
// time.
type Rollout struct {
	Within time.Duration
	Now    time.Time
}

// until returns when the current rollout becomes a problem.
func (r Rollout) until(condition resourcesv1alpha1.Condition) time.Time {
	return condition.LastTransitionTime.Add(r.Within)
}

// check returns the reason why a ManagedResource is not applied, healthy or rolled out; nil if it is all three. It also
// returns when the current rollout becomes a problem; zero for never.
func check(mr *resourcesv1alpha1.ManagedResource, rollout Rollout) (*Problem, time.Time) {
	name := fmt.Sprintf("ManagedResource %s/%s", mr.Namespace, mr.Name)
	if mr.Status.ObservedGeneration != mr.Generation {
		return &Problem{
			Reason: corev1beta1.ReasonOutdatedStatus, Message: fmt.Sprintf("%s: generation %d has not been observed", name, mr.Generation),
		}, time.Time{}
	}
	for _, wanted := range []struct {
		kind   resourcesv1alpha1.ConditionType
		status resourcesv1alpha1.ConditionStatus
	}{
		{resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ConditionTrue},
		{resourcesv1alpha1.ResourcesHealthy, resourcesv1alpha1.ConditionTrue},
		{resourcesv1alpha1.ResourcesProgressing, resourcesv1alpha1.ConditionFalse},
	} {
		at := slices.IndexFunc(mr.Status.Conditions,
			func(condition resourcesv1alpha1.Condition) bool { return condition.Type == wanted.kind })
		if at < 0 {
			return &Problem{
				Reason:  corev1beta1.ReasonMissingManagedResourceCondition,
				Message: fmt.Sprintf("%s has no condition %s", name, wanted.kind),
			}, time.Time{}
		}
		condition := mr.Status.Conditions[at]
		if condition.Status == wanted.status {
			continue
		}
		found := &Problem{Reason: condition.Reason, Message: fmt.Sprintf("%s: %s", name, condition.Message)}
		if wanted.kind == resourcesv1alpha1.ResourcesProgressing && condition.Status == resourcesv1alpha1.ConditionTrue && rollout.Within > 0 {
			if until := rollout.until(condition); rollout.Now.Before(until) {
				return nil, until
			}
			found.Reason = corev1beta1.ReasonProgressingRolloutStuck
		}
		for _, code := range condition.Codes {
			found.Codes = append(found.Codes, corev1beta1.ErrorCode(code))
		}
		return found, time.Time{}
	}
	return nil, time.Time{}
}

// CheckAll returns the reasons why ManagedResources are not applied, healthy or rolled out; nil if all are. The result
// has the reason of the first one that is not, the messages of up to ten, and all codes, sorted.
func CheckAll(all []resourcesv1alpha1.ManagedResource) *Problem {
	found, _ := Rollout{}.CheckAll(all)
	return found
}

// CheckAll is [CheckAll] with a time limit for rollouts. It also returns when the first current rollout becomes a
// problem; zero for never.
func (r Rollout) CheckAll(all []resourcesv1alpha1.ManagedResource) (*Problem, time.Time) {
	var result *Problem
	var texts []string
	var next time.Time
	for i := range all {
		found, until := check(&all[i], r)
		if !until.IsZero() && (next.IsZero() || until.Before(next)) {
			next = until
		}
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
		return nil, next
	}
	if more := len(texts) - maxNamed; more > 0 {
		texts = append(texts[:maxNamed], fmt.Sprintf("and %d more", more))
	}
	slices.Sort(result.Codes)
	result.Message, result.Codes = strings.Join(texts, "; "), slices.Compact(result.Codes)
	return result, next
}

// Limited shortens a text that is too long for a condition.
func Limited(text string) string {
	if len(text) > maxText {
		return strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	return text
}
