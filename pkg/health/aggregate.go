package health

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	pkgmessage "github.com/trellis-k8s/trellis/pkg/conditiontext"
)

// LabelCareConditionType on a ManagedResource names the condition of a garden, seed or shoot that it counts for (the "Care"
// reconcilers of gardenlet and gardener-operator).
const LabelCareConditionType = "care.gardener.cloud/condition-type"

// Reasons of the conditions that sum up ManagedResources, beside those of the ManagedResources (Gardener's care
// controllers).
const (
	// ReasonManagedResourcesHealthy goes with status True: all ManagedResources are applied and healthy.
	ReasonManagedResourcesHealthy = "ManagedResourcesHealthy"
	// ReasonOutdatedStatus means that the status of a ManagedResource is about an older generation.
	ReasonOutdatedStatus = "OutdatedStatus"
	// ReasonMissingCondition means that a ManagedResource does not say yet whether it is applied, or healthy.
	ReasonMissingCondition = "MissingManagedResourceCondition"
	// ReasonRolloutStuck means that a ManagedResource has been progressing for too long.
	ReasonRolloutStuck = "ProgressingRolloutStuck"
)

// Selection says which ManagedResources each condition sums up. A ManagedResource may count for several.
type Selection map[resourcesv1alpha1.ConditionType]func(*resourcesv1alpha1.ManagedResource) bool

// Labelled selects ManagedResources that are labelled for the condition type, such as ObservabilityComponentsHealthy.
func Labelled(conditionType resourcesv1alpha1.ConditionType) func(*resourcesv1alpha1.ManagedResource) bool {
	return func(mr *resourcesv1alpha1.ManagedResource) bool {
		return mr.Labels[LabelCareConditionType] == string(conditionType)
	}
}

// RuntimeDefault selects ManagedResources with a class, that is, for the cluster that they are in, unless they are labelled
// for another condition type, as ControlPlaneHealthy of a shoot and RuntimeComponentsHealthy of a garden do.
func RuntimeDefault(conditionType resourcesv1alpha1.ConditionType) func(*resourcesv1alpha1.ManagedResource) bool {
	labelled := Labelled(conditionType)
	return func(mr *resourcesv1alpha1.ManagedResource) bool {
		return HasClass(mr) && (mr.Labels[LabelCareConditionType] == "" || labelled(mr))
	}
}

// TargetDefault selects ManagedResources without a class, and those that are labelled for the condition type, as
// SystemComponentsHealthy of a shoot and VirtualComponentsHealthy of a garden do.
func TargetDefault(conditionType resourcesv1alpha1.ConditionType) func(*resourcesv1alpha1.ManagedResource) bool {
	labelled := Labelled(conditionType)
	return func(mr *resourcesv1alpha1.ManagedResource) bool { return !HasClass(mr) || labelled(mr) }
}

// HasClass selects ManagedResources with a class, as SeedSystemComponentsHealthy of a seed does.
func HasClass(mr *resourcesv1alpha1.ManagedResource) bool {
	return mr.Spec.Class != nil && *mr.Spec.Class != ""
}

// Thresholds say for how long trouble may last before it is reported.
type Thresholds struct {
	// Condition has, by its type, for how long a condition that was True is Progressing before it becomes False. Without
	// an entry it becomes False at once (conditionThresholds of Gardener's care controllers).
	Condition map[resourcesv1alpha1.ConditionType]time.Duration
	// Progressing is for how long a ManagedResource may be progressing; 0 means no limit
	// (managedResourceProgressingThreshold of gardenlet's shoot care controller).
	Progressing time.Duration
}

// Aggregate sums ManagedResources up to one condition for each type of the selection, sorted by type. The condition says
// what the first ManagedResource, sorted by namespace and name, says that is not applied, not healthy, outdated, or
// progressing for too long; it is True if there is none. A condition that was True before is Progressing first, as far as
// there is a threshold for it. Previous are the conditions as they were; only those of the selection's types matter.
func Aggregate(now time.Time, previous []resourcesv1alpha1.Condition, managedResources []resourcesv1alpha1.ManagedResource,
	selection Selection, thresholds Thresholds,
) []resourcesv1alpha1.Condition {
	sorted := make([]*resourcesv1alpha1.ManagedResource, 0, len(managedResources))
	for i := range managedResources {
		sorted = append(sorted, &managedResources[i])
	}
	slices.SortStableFunc(sorted, func(a, b *resourcesv1alpha1.ManagedResource) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	conditions := make([]resourcesv1alpha1.Condition, 0, len(selection))
	for _, conditionType := range slices.Sorted(maps.Keys(selection)) {
		result := resourcesv1alpha1.NewStatement(resourcesv1alpha1.ConditionTrue, ReasonManagedResourcesHealthy, "All ManagedResources are healthy.")
		for _, mr := range sorted {
			if selection[conditionType](mr) {
				if reason, message := ailment(now, mr, thresholds.Progressing); reason != "" {
					result = resourcesv1alpha1.NewStatement(resourcesv1alpha1.ConditionFalse, reason, pkgmessage.ForCondition(message))
					break
				}
			}
		}
		old := conditionOf(previous, conditionType)
		result.Status = dampen(now, old, result.Status, thresholds.Condition[conditionType])
		conditions = append(conditions, succeed(now, old, conditionType, result))
	}
	return conditions
}

// ailment says why a ManagedResource does not count as well; the reason is empty if it does.
func ailment(now time.Time, mr *resourcesv1alpha1.ManagedResource, threshold time.Duration) (reason, message string) {
	name := fmt.Sprintf("ManagedResource %q", mr.Namespace+"/"+mr.Name)
	if mr.Status.ObservedGeneration != mr.Generation {
		return ReasonOutdatedStatus, fmt.Sprintf("%s: observed generation outdated (%d/%d)", name,
			mr.Status.ObservedGeneration, mr.Generation)
	}
	for _, conditionType := range []resourcesv1alpha1.ConditionType{
		resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ResourcesHealthy,
	} {
		condition := conditionOf(mr.Status.Conditions, conditionType)
		if condition == nil {
			return ReasonMissingCondition, fmt.Sprintf("%s: %s", name, missing(string(conditionType)))
		}
		if condition.Status != resourcesv1alpha1.ConditionTrue {
			return cmp.Or(condition.Reason, string(conditionType)), fmt.Sprintf("%s: %s", name, condition.Message)
		}
	}
	progressing := conditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesProgressing)
	if threshold > 0 && progressing != nil && progressing.Status == resourcesv1alpha1.ConditionTrue &&
		now.Sub(progressing.LastTransitionTime.Time) > threshold {
		return ReasonRolloutStuck, fmt.Sprintf("%s has been progressing for more than %s: %s", name, threshold, progressing.Message)
	}
	return "", ""
}

// dampen returns the status that a condition gets instead of False until the threshold has passed. The time counts from
// when the condition was last True, whatever its message said since: trouble that changes is trouble still.
func dampen(now time.Time, old *resourcesv1alpha1.Condition, status resourcesv1alpha1.ConditionStatus, threshold time.Duration,
) resourcesv1alpha1.ConditionStatus {
	if status != resourcesv1alpha1.ConditionFalse || old == nil || threshold <= 0 {
		return status
	}
	within := old.Status == resourcesv1alpha1.ConditionProgressing && now.Sub(old.LastTransitionTime.Time) <= threshold
	if old.Status == resourcesv1alpha1.ConditionTrue || within {
		return resourcesv1alpha1.ConditionProgressing
	}
	return status
}

// succeed returns the condition that follows an old one, which may be nil. The transition time moves with the status, the
// update time with anything (as for all Gardener conditions).
func succeed(now time.Time, old *resourcesv1alpha1.Condition, conditionType resourcesv1alpha1.ConditionType, result resourcesv1alpha1.Statement,
) resourcesv1alpha1.Condition {
	condition := resourcesv1alpha1.Condition{
		Type: conditionType, Status: result.Status, Reason: result.Reason, Message: result.Message,
		LastTransitionTime: metav1.NewTime(now), LastUpdateTime: metav1.NewTime(now),
	}
	if old != nil && old.Status == result.Status {
		condition.LastTransitionTime = old.LastTransitionTime
		if old.Reason == result.Reason && old.Message == result.Message {
			condition.LastUpdateTime = old.LastUpdateTime
		}
	}
	return condition
}

// conditionOf returns the condition of a type, nil if there is none.
func conditionOf(conditions []resourcesv1alpha1.Condition, conditionType resourcesv1alpha1.ConditionType,
) *resourcesv1alpha1.Condition {
	i := slices.IndexFunc(conditions, func(c resourcesv1alpha1.Condition) bool { return c.Type == conditionType })
	if i < 0 {
		return nil
	}
	return &conditions[i]
}
