package health

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// defaultThreshold is the default time after which Progressing becomes False.
const defaultThreshold = 5 * time.Minute

// found is the result of a check, or an error if it could not run.
type found struct {
	condition corev1beta1.ConditionType
	finding   Finding
	threshold time.Duration
	err       error
}

// severity orders results. The worst one determines the condition.
func (f found) severity() int {
	switch {
	case f.err == nil && f.finding.Status == corev1beta1.ConditionTrue:
		return 0
	case f.err == nil && f.finding.Status == corev1beta1.ConditionProgressing:
		return 1
	case f.err != nil:
		return 2
	}
	return 3
}

// conclude returns the conditions of an object, and when they change without an event. A zero time means never. It
// retains conditions of others. Timestamps change only with their content.
func conclude(
	before []corev1beta1.Condition, all []found, obsolete []corev1beta1.ConditionType, now time.Time,
) (after []corev1beta1.Condition, next time.Time) {
	byCondition := map[corev1beta1.ConditionType][]found{}
	for _, one := range all {
		byCondition[one.condition] = append(byCondition[one.condition], one)
	}
	after = slices.Clone(before)
	for _, condition := range slices.Sorted(maps.Keys(byCondition)) {
		at := slices.IndexFunc(after, func(c corev1beta1.Condition) bool { return c.Type == condition })
		if at < 0 {
			after = append(after, corev1beta1.Condition{Type: condition})
			at = len(after) - 1
		}
		wanted, until := conditionOf(after[at], byCondition[condition], now)
		if !until.IsZero() && (next.IsZero() || until.Before(next)) {
			next = until
		}
		after[at] = keepTimes(after[at], wanted, now)
	}
	after = slices.DeleteFunc(after, func(c corev1beta1.Condition) bool { return slices.Contains(obsolete, c.Type) })
	return after, next
}

// conditionOf returns a condition from the results of its checks, and until when it may be Progressing.
func conditionOf(before corev1beta1.Condition, all []found, now time.Time) (corev1beta1.Condition, time.Time) {
	worst := slices.MaxFunc(all, func(a, b found) int { return cmp.Compare(a.severity(), b.severity()) })
	wanted := corev1beta1.Condition{Type: before.Type}
	if worst.err != nil {
		wanted.Status, wanted.Reason = corev1beta1.ConditionUnknown, ReasonError
		wanted.Message = "The check could not be run: " + worst.err.Error()
		return wanted, time.Time{}
	}
	wanted.Status, wanted.Message, wanted.Codes = worst.finding.Status, messageOf(all, worst), codesOf(all, worst)
	switch worst.finding.Status {
	case corev1beta1.ConditionTrue:
		wanted.Reason = ReasonSuccessful
		wanted.Message = cmp.Or(wanted.Message, "All health checks are successful.")
		return wanted, time.Time{}
	case corev1beta1.ConditionProgressing:
		until := now.Add(cmp.Or(worst.threshold, defaultThreshold))
		switch before.Status {
		case corev1beta1.ConditionProgressing:
			until = before.LastTransitionTime.Add(cmp.Or(worst.threshold, defaultThreshold))
		case corev1beta1.ConditionFalse:
			until = time.Time{} // a failure does not become Progressing again
		}
		if now.Before(until) {
			wanted.Reason = ReasonProgressing
			return wanted, until
		}
	}
	wanted.Status, wanted.Reason = corev1beta1.ConditionFalse, ReasonUnsuccessful
	return wanted, time.Time{}
}

// messageOf joins the messages of the results that are as bad as the worst.
func messageOf(all []found, worst found) string {
	var texts []string
	for _, one := range all {
		if one.severity() == worst.severity() && one.finding.Message != "" && !slices.Contains(texts, one.finding.Message) {
			texts = append(texts, one.finding.Message)
		}
	}
	return strings.Join(texts, " ")
}

// codesOf joins the codes of the results that are as bad as the worst.
func codesOf(all []found, worst found) []corev1beta1.ErrorCode {
	var codes []corev1beta1.ErrorCode
	for _, one := range all {
		if one.severity() == worst.severity() {
			codes = append(codes, one.finding.Codes...)
		}
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

// keepTimes copies the timestamps of the previous condition whose content is unchanged.
func keepTimes(before, wanted corev1beta1.Condition, now time.Time) corev1beta1.Condition {
	if before.LastTransitionTime.IsZero() {
		return corev1beta1.KeepTimes(nil, wanted, now)
	}
	return corev1beta1.KeepTimes(&before, wanted, now)
}
