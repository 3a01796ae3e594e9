package flow

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// notApplied returns why the current generation of a ManagedResource is not applied, empty if it is.
func notApplied(mr *resourcesv1alpha1.ManagedResource) string {
	applied := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied)
	switch {
	case mr.Status.ObservedGeneration != mr.Generation:
		return fmt.Sprintf("is not applied: its generation %d has not been observed", mr.Generation)
	case applied.Status != resourcesv1alpha1.ConditionTrue:
		return "is not applied: " + cmp.Or(applied.Reason, "no condition reports it")
	}
	return ""
}

// IsApplied reports whether the current generation of a ManagedResource is applied.
func IsApplied(mr *resourcesv1alpha1.ManagedResource) bool { return notApplied(mr) == "" }

// awaitsHealth reports whether operations and rollouts wait for the health of the objects of a ManagedResource.
func awaitsHealth(mr *resourcesv1alpha1.ManagedResource) bool {
	return mr.Labels[LabelHealthAwaited] != "false"
}

// AwaitNoHealth makes operations and rollouts not wait for the health of the objects of a bundle: see [LabelHealthAwaited].
func AwaitNoHealth(bundle *Bundle) {
	if bundle.Labels == nil {
		bundle.Labels = map[string]string{}
	}
	bundle.Labels[LabelHealthAwaited] = "false"
}

// notRolledOut returns why the current generation of a ManagedResource is not applied, healthy and rolled out, empty if
// it is. Its health does not count if nothing waits for it.
func notRolledOut(mr *resourcesv1alpha1.ManagedResource) string {
	if why := notApplied(mr); why != "" || !awaitsHealth(mr) {
		return why
	}
	healthy := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesHealthy)
	progressing := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesProgressing)
	switch {
	case healthy.Status != resourcesv1alpha1.ConditionTrue:
		return "is not healthy: " + cmp.Or(healthy.Reason, "no condition reports it")
	case progressing.Status != resourcesv1alpha1.ConditionFalse:
		return "is being rolled out: " + cmp.Or(progressing.Reason, "no condition reports it")
	}
	return ""
}

// IsRolledOut reports whether the current generation of a ManagedResource is applied, healthy and rolled out.
func IsRolledOut(mr *resourcesv1alpha1.ManagedResource) bool { return notRolledOut(mr) == "" }

// Unsettled returns the differences between a plan and the live state: everything that is not written, applied, healthy
// and rolled out. It returns nil if there are none. Only then a rotation enters its next phase. live must be read from
// the API server, because a cache might show the state before the phase started.
func Unsettled(owner Owner, plan Plan, live Live, rules Rules) ([]string, error) {
	why, err := Differences(owner, plan, live, rules)
	if err == nil && !live.Uncached {
		why = append(why, "the live objects were read from a cache")
	}
	return why, err
}

// Differences returns the same as [Unsettled], also if live was read from a cache. It is nil for a cache that shows the state
// before the current phase started.
func Differences(owner Owner, plan Plan, live Live, rules Rules) ([]string, error) {
	decision, err := Decide(owner, plan, live, rules)
	if err != nil {
		return nil, err
	}
	var why []string
	for _, wait := range plan.Waits {
		why = append(why, "the plan waits: "+wait.Name+": "+wait.Reason)
	}
	for _, task := range plan.Tasks {
		why = append(why, "the task "+task.Name+" is due")
	}
	for _, step := range decision.Steps {
		if step.Action != ActionRecord {
			why = append(why, fmt.Sprintf("%s is not written: %s", step.Key, step.Reason))
		}
	}
	for _, reasons := range []map[Key]string{decision.Held, decision.Pending, decision.Problems} {
		for _, key := range slices.SortedFunc(maps.Keys(reasons), Key.Compare) {
			why = append(why, fmt.Sprintf("%s: %s", key, reasons[key]))
		}
	}
	for _, key := range decision.Unmentioned {
		why = append(why, fmt.Sprintf("%s exists, but the plan does not mention it", key))
	}
	for _, bundle := range plan.Bundles {
		if mr := live.ManagedResources[bundle.Key]; mr != nil {
			if reason := notRolledOut(mr); reason != "" {
				why = append(why, fmt.Sprintf("ManagedResource %s %s", bundle.Key, reason))
			}
		}
	}
	return why, nil
}
