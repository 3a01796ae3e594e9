package health

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// defaultThreshold is how long something may progress before it counts as unhealthy.
const defaultThreshold = 5 * time.Minute

// found is what a check found, or why it could not be made.
type found struct {
	condition corev1beta1.ConditionType
	finding   Finding
	threshold time.Duration
	err       error
}

// severity orders findings: the worst one decides.
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

// conclude returns the conditions of an object, and when they change though nothing is seen to change; zero for never. Conditions of others are
// kept. Times move only with what they belong to.
func conclude(before []corev1beta1.Condition, all []found, obsolete []corev1beta1.ConditionType, now time.Time) (after []corev1beta1.Condition, next time.Time) {
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

// conditionOf returns a condition from what its checks found, and until when it may be Progressing.
func conditionOf(before corev1beta1.Condition, all []found, now time.Time) (corev1beta1.Condition, time.Time) {
	worst := slices.MaxFunc(all, func(a, b found) int { return cmp.Compare(a.severity(), b.severity()) })
	wanted := corev1beta1.Condition{Type: before.Type}
	if worst.err != nil {
		wanted.Status, wanted.Reason, wanted.Message = corev1beta1.ConditionUnknown, ReasonError, "The check could not be made: "+worst.err.Error()
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
			until = time.Time{} // what has failed does not begin again
		}
		if now.Before(until) {
			wanted.Reason = ReasonProgressing
			return wanted, until
		}
	}
	wanted.Status, wanted.Reason = corev1beta1.ConditionFalse, ReasonUnsuccessful
	return wanted, time.Time{}
}

// messageOf joins the messages of the findings that are as bad as the worst.
func messageOf(all []found, worst found) string {
	var texts []string
	for _, one := range all {
		if one.severity() == worst.severity() && one.finding.Message != "" && !slices.Contains(texts, one.finding.Message) {
			texts = append(texts, one.finding.Message)
		}
	}
	return strings.Join(texts, " ")
}

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

// keepTimes gives a condition the times of the one before, as far as these are about the same.
func keepTimes(before, wanted corev1beta1.Condition, now time.Time) corev1beta1.Condition {
	if before.LastTransitionTime.IsZero() {
		return corev1beta1.KeepTimes(nil, wanted, now)
	}
	return corev1beta1.KeepTimes(&before, wanted, now)
}
