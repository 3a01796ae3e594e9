package flow

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// Report is the progress of an owner, computed from the conditions of its ManagedResources.
type Report struct {
	LastOperation corev1beta1.LastOperation
	LastErrors    []corev1beta1.LastError
}

// progressEvery is the minimum interval between reports if only the progress has changed.
const progressEvery = 5 * time.Second

// Pause returns how long to wait before this report replaces the previous one; 0 if it is due now. The end of an
// operation, its errors and the start of the next operation are reported immediately, because users wait for them. A
// write costs as much as that of a bundle, so mere progress can wait.
func (r Report) Pause(before Report, now time.Time) time.Duration {
	last, was := r.LastOperation, before.LastOperation
	if last.State != corev1beta1.LastOperationStateProcessing || was.State != last.State || was.Type != last.Type {
		return 0
	}
	if !equality.Semantic.DeepEqual(r.LastErrors, before.LastErrors) {
		return 0
	}
	return max(0, was.LastUpdateTime.Add(progressEvery).Sub(now))
}

// PauseProgress returns how long to wait before an operation replaces the previous one in the status; 0 if it is due now. Only
// the progress of an operation waits. before is nil if there is none.
func PauseProgress(before *corev1beta1.LastOperation, next corev1beta1.LastOperation, now time.Time) time.Duration {
	const processing = corev1beta1.LastOperationStateProcessing
	if before == nil || before.State != processing || next.State != processing || next == *before || before.Progress == 0 {
		return 0
	}
	return max(0, before.LastUpdateTime.Add(progressEvery).Sub(now))
}

// Operation is the subject of a report.
type Operation struct {
	// Name of the flow, such as "Shoot cluster reconciliation".
	Name string
	Type corev1beta1.LastOperationType
	// RetryUntil is the time from which errors are final; zero for never.
	RetryUntil time.Time
	// Before is the report of the last pass. A timestamp is updated only together with the content that it belongs to.
	// Otherwise a report that is an input of the flow would trigger it endlessly.
	Before Report
}

// Progress reports the progress of an emission. It is pure.
func Progress(operation Operation, owner Owner, result Result, now time.Time) Report {
	done, all, running := result.count(owner)
	percent := int32(100)
	if all > 0 {
		percent = int32(100 * done / all) //nolint:gosec // at most 100
	}
	report := Report{LastErrors: operation.keepTimes(result.errors(owner, now), now)}
	last := corev1beta1.LastOperation{Type: operation.Type, Progress: percent, State: corev1beta1.LastOperationStateProcessing}
	switch {
	case len(report.LastErrors) > 0 && (hasFinal(report.LastErrors) || !operation.RetryUntil.IsZero() && !now.Before(operation.RetryUntil)):
		last.State, last.Description = corev1beta1.LastOperationStateFailed, joinErrors(report.LastErrors)
	case len(report.LastErrors) > 0:
		last.State = corev1beta1.LastOperationStateError
		last.Description = joinErrors(report.LastErrors) + " Operation will be retried."
	case percent == 100:
		last.State, last.Description = corev1beta1.LastOperationStateSucceeded, operation.Name+" finished"
	case percent == 0:
		last.Description = "Starting " + operation.Name
	default:
		last.Description = strings.Join(append(running, result.causes(owner, now)...), ", ")
	}
	report.LastOperation = *corev1beta1.KeepTime(&operation.Before.LastOperation, last, now)
	return report
}

// count returns how many bundles have reached the planned state, the total, and the names of the others.
func (r Result) count(owner Owner) (done, all int, running []string) {
	wanted := map[Key]bool{}
	for _, bundle := range r.Plan.Bundles {
		wanted[bundle.Key] = true
	}
	keys := maps.Clone(wanted)
	for key := range r.Held {
		keys[key] = true
	}
	for _, tombstone := range r.Plan.Tombstones {
		keys[tombstone.Key] = true
	}
	if len(keys) > 0 {
		done, all = r.Plan.Gone, r.Plan.Gone
	}
	for _, key := range slices.SortedFunc(maps.Keys(keys), Key.Compare) {
		all++
		mr := r.Live.ManagedResources[key]
		owned := mr != nil && owner.owns(mr.Labels)
		_, held := r.Held[key]
		written := slices.ContainsFunc(r.Steps, func(step Step) bool { return step.Key == key && step.Action != ActionRecord })
		if !held && !written && r.Problems[key] == "" && r.Pending[key] == "" && (!wanted[key] || owned && notRolledOut(mr) == "") {
			done++
			continue
		}
		running = append(running, key.Name)
	}
	for _, task := range r.Plan.Tasks {
		all++
		running = append(running, task.Name)
	}
	for _, wait := range r.Plan.Waits {
		if len(wait.Holds) == 0 && !wait.HoldsAll {
			all++
			running = append(running, wait.Name)
		}
	}
	return done, all, running
}

const (
	// healthGrace is how long objects may be unhealthy until that is reported. Programs need a moment to start.
	healthGrace = 30 * time.Second
	// errorGrace is how long they may be unhealthy until that is an error of the operation. Programs that are not ready for a moment, for example
	// because a node is overloaded, do not make an operation fail; conditions report them. Gardener waits for three to five minutes.
	errorGrace = 3 * time.Minute
)

// causesChangeAt returns when [Progress] reports another bundle as unhealthy without an event; zero for never.
func causesChangeAt(owner Owner, live Live, now time.Time) time.Time {
	var next time.Time
	for _, mr := range live.owned(owner) {
		if since, unhealthy := unhealthySince(mr); unhealthy && !since.IsZero() {
			next = earliest(now, earliest(now, next, since.Add(healthGrace)), since.Add(errorGrace))
		}
	}
	return next
}

// causes names the bundles that are unhealthy for longer than programs need to start, with the reasons. While they are
// rolled out, this is not an error yet, but users should not have to search among all the bundles that wait for these.
func (r Result) causes(owner Owner, now time.Time) []string {
	var found []string
	for _, mr := range r.Live.owned(owner) {
		since, unhealthy := unhealthySince(mr)
		if !unhealthy || since.IsZero() || !r.counts(mr) || now.Before(since.Add(healthGrace)) {
			continue
		}
		condition := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesHealthy)
		reason, _, _ := strings.Cut(cmp.Or(condition.Message, condition.Reason), "\n\n")
		found = append(found, fmt.Sprintf("%s is not healthy: %s", mr.Name, strings.TrimSuffix(reason, ".")))
	}
	return found
}

// unhealthySince returns when the objects of a ManagedResource became unhealthy; zero if the condition does not say. It
// reports false if they are healthy, if that is not known, if they are being deleted, or if nothing waits for their health.
func unhealthySince(mr *resourcesv1alpha1.ManagedResource) (time.Time, bool) {
	condition := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesHealthy)
	unhealthy := condition.Status == resourcesv1alpha1.ConditionFalse && mr.DeletionTimestamp == nil &&
		mr.Status.ObservedGeneration == mr.Generation && awaitsHealth(mr)
	return condition.LastTransitionTime.Time, unhealthy
}

// isStarting reports whether a ManagedResource fails only because its objects are not healthy yet, or not for a moment.
func isStarting(mr *resourcesv1alpha1.ManagedResource, now time.Time) bool {
	healthy := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesHealthy)
	since, unhealthy := unhealthySince(mr)
	return unhealthy && notApplied(mr) == "" && healthy.Reason != resourcesv1alpha1.ReasonRolloutStuck && len(codesOf(mr)) == 0 &&
		now.Before(since.Add(errorGrace))
}

// notInTime is the prefix of the error of a wait whose deadline has passed.
const notInTime = "not in time: "

// IsNotInTime reports whether an operation failed because the deadline of a wait has passed.
func IsNotInTime(last corev1beta1.LastOperation) bool {
	return last.State == corev1beta1.LastOperationStateError && strings.Contains(last.Description, UpperFirst(notInTime))
}

// errors returns the failures: bundles that cannot be written, applied or become healthy, and waits whose deadline has
// passed.
func (r Result) errors(owner Owner, now time.Time) []corev1beta1.LastError {
	failed := map[string]corev1beta1.LastError{}
	add := func(task, text string, codes []corev1beta1.ErrorCode) {
		if text != "" {
			failed[task] = corev1beta1.LastError{Description: UpperFirst(text), TaskID: ptr.To(task), Codes: codes}
		}
	}
	for _, mr := range r.Live.owned(owner) {
		if r.counts(mr) && !isStarting(mr, now) {
			add(mr.Name, failing(mr), codesOf(mr))
		}
	}
	for key, why := range r.Problems {
		add(key.Name, why, CodesOfWrite(why))
	}
	for _, wait := range r.Plan.Waits {
		if !wait.Deadline.IsZero() && !now.Before(wait.Deadline) {
			switch wait.Code {
			case "":
				add(wait.Name, notInTime+wait.Reason, nil)
			case corev1beta1.ErrorConfigurationProblem, corev1beta1.ErrorRetryableConfigurationProblem:
				add(wait.Name, wait.Reason, []corev1beta1.ErrorCode{wait.Code}) // it is wrong, not late
			default:
				add(wait.Name, notInTime+wait.Reason, []corev1beta1.ErrorCode{wait.Code})
			}
		}
	}
	errs := make([]corev1beta1.LastError, 0, len(failed))
	for _, task := range slices.Sorted(maps.Keys(failed)) {
		errs = append(errs, failed[task])
	}
	return errs
}

// counts reports whether the state of a ManagedResource refers to the current plan. A revision that was just replaced,
// or that only awaits its deletion, might fail for a reason that no longer applies. A final error of it would end the
// operation that fixes it.
func (r Result) counts(mr *resourcesv1alpha1.ManagedResource) bool {
	key := keyOf(mr)
	wanted := slices.ContainsFunc(r.Plan.Bundles, func(bundle Bundle) bool { return bundle.Key == key })
	switch {
	case mr.DeletionTimestamp != nil:
		return true
	case slices.ContainsFunc(r.Steps, func(step Step) bool { return step.Key == key && step.Action != ActionRecord }):
		return false
	case r.Plan.Deleting:
		return wanted
	}
	return !slices.ContainsFunc(r.Plan.Tombstones, func(tombstone Tombstone) bool { return tombstone.Key == key })
}

// failing returns why a ManagedResource fails. It is empty if it does not fail or if that is not known yet. For a
// ManagedResource that is being deleted, its health before the deletion is ignored.
func failing(mr *resourcesv1alpha1.ManagedResource) string {
	if mr.Status.ObservedGeneration != mr.Generation {
		return ""
	}
	for _, kind := range []resourcesv1alpha1.ConditionType{resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ResourcesHealthy} {
		condition := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, kind)
		if condition.Status != resourcesv1alpha1.ConditionFalse {
			continue
		}
		if kind == resourcesv1alpha1.ResourcesHealthy && mr.DeletionTimestamp == nil && !awaitsHealth(mr) {
			continue // a condition reports it
		}
		if kind == resourcesv1alpha1.ResourcesHealthy && mr.DeletionTimestamp != nil && condition.LastUpdateTime.Time.Before(mr.DeletionTimestamp.Time) {
			continue
		}
		progressing := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesProgressing).Status
		if kind == resourcesv1alpha1.ResourcesHealthy && progressing == resourcesv1alpha1.ConditionTrue &&
			condition.Reason != resourcesv1alpha1.ReasonRolloutStuck {
			continue // objects are not healthy during a rollout
		}
		return cmp.Or(condition.Message, condition.Reason)
	}
	return ""
}

// failingSince returns when a failing ManagedResource began to fail; zero if its conditions do not say.
func failingSince(mr *resourcesv1alpha1.ManagedResource) time.Time {
	kinds := []resourcesv1alpha1.ConditionType{resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ResourcesHealthy}
	if !awaitsHealth(mr) {
		kinds = kinds[:1]
	}
	for _, kind := range kinds {
		if condition := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, kind); condition.Status == resourcesv1alpha1.ConditionFalse {
			return condition.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// keepTimes keeps the timestamps of errors that the last report already contained.
func (o Operation) keepTimes(errs []corev1beta1.LastError, now time.Time) []corev1beta1.LastError {
	for i := range errs {
		errs[i].LastUpdateTime = ptr.To(metav1.NewTime(now))
		for _, before := range o.Before.LastErrors {
			same := before
			same.LastUpdateTime = errs[i].LastUpdateTime
			if before.LastUpdateTime != nil && equality.Semantic.DeepEqual(same, errs[i]) {
				errs[i].LastUpdateTime = before.LastUpdateTime
			}
		}
	}
	return errs
}

func joinErrors(errs []corev1beta1.LastError) string {
	texts := make([]string, 0, len(errs))
	for _, err := range errs {
		texts = append(texts, strings.TrimSuffix(err.Description, ".")+".")
	}
	return strings.Join(texts, " ")
}

// fieldPath matches a text that begins with the path of a field, such as spec.extensions[0].
var fieldPath = regexp.MustCompile(`^[a-z]\w*(\.[a-z]|\[)`)

// UpperFirst returns a text that begins with an upper-case letter, unless it begins with the path of a field.
func UpperFirst(text string) string {
	if text == "" || fieldPath.MatchString(text) {
		return text
	}
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}
