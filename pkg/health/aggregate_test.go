package health

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// start is when the ManagedResources of the tests said what they say.
var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

const components resourcesv1alpha1.ConditionType = "ComponentsHealthy"

var allOfThem = Selection{components: func(*resourcesv1alpha1.ManagedResource) bool { return true }}

func conditionWith(conditionType resourcesv1alpha1.ConditionType, status resourcesv1alpha1.ConditionStatus, reason, message string,
) resourcesv1alpha1.Condition {
	return resourcesv1alpha1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message,
		LastTransitionTime: metav1.NewTime(start), LastUpdateTime: metav1.NewTime(start)}
}

// managed returns a ManagedResource that is applied and healthy but for the conditions that are given.
func managed(name string, conditions ...resourcesv1alpha1.Condition) resourcesv1alpha1.ManagedResource {
	mr := resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name, Generation: 3}}
	mr.Status.ObservedGeneration = 3
	mr.Status.Conditions = append(slices.Clone(conditions),
		conditionWith(resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ConditionTrue, "ApplySucceeded", "applied"),
		conditionWith(resourcesv1alpha1.ResourcesHealthy, resourcesv1alpha1.ConditionTrue, "ResourcesHealthy", "healthy"),
		conditionWith(resourcesv1alpha1.ResourcesProgressing, resourcesv1alpha1.ConditionFalse, "ResourcesRolledOut", "rolled out"))
	return mr
}

func TestAggregateFindsWhatFails(t *testing.T) {
	unhealthy := conditionWith(resourcesv1alpha1.ResourcesHealthy, resourcesv1alpha1.ConditionFalse, "PodUnhealthy", "it is ill")
	progressing := conditionWith(resourcesv1alpha1.ResourcesProgressing, resourcesv1alpha1.ConditionTrue, "PodProgressing", "1 of 2")
	outdated := managed("a")
	outdated.Generation = 4
	silent := managed("a")
	silent.Status.Conditions = silent.Status.Conditions[:1]
	healthy := resourcesv1alpha1.NewStatement(resourcesv1alpha1.ConditionTrue, "ManagedResourcesHealthy", "All ManagedResources are healthy.")
	failed := func(reason, message string) resourcesv1alpha1.Statement {
		return resourcesv1alpha1.NewStatement(resourcesv1alpha1.ConditionFalse, reason, message)
	}
	for name, test := range map[string]struct {
		managedResources []resourcesv1alpha1.ManagedResource
		want             resourcesv1alpha1.Statement
	}{
		"none": {nil, healthy},
		"all":  {[]resourcesv1alpha1.ManagedResource{managed("a"), managed("b")}, healthy},
		"not applied": {[]resourcesv1alpha1.ManagedResource{managed("a", unhealthy,
			conditionWith(resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ConditionFalse, "ApplyFailed", "refused"))},
			failed("ApplyFailed", `ManagedResource "garden/a": refused`)},
		"being applied": {[]resourcesv1alpha1.ManagedResource{managed("a",
			conditionWith(resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ConditionProgressing, "ApplyProgressing", "busy"))},
			failed("ApplyProgressing", `ManagedResource "garden/a": busy`)},
		"not healthy": {[]resourcesv1alpha1.ManagedResource{managed("a", unhealthy)},
			failed("PodUnhealthy", `ManagedResource "garden/a": it is ill`)},
		"not known": {[]resourcesv1alpha1.ManagedResource{managed("a",
			conditionWith(resourcesv1alpha1.ResourcesHealthy, resourcesv1alpha1.ConditionUnknown, "", "no idea"))},
			failed("ResourcesHealthy", `ManagedResource "garden/a": no idea`)},
		"outdated": {[]resourcesv1alpha1.ManagedResource{outdated},
			failed("OutdatedStatus", `ManagedResource "garden/a": observed generation outdated (3/4)`)},
		"without a condition": {[]resourcesv1alpha1.ManagedResource{silent}, failed("MissingManagedResourceCondition",
			`ManagedResource "garden/a": condition "ResourcesHealthy" is missing`)},
		"the first by name": {[]resourcesv1alpha1.ManagedResource{managed("z", unhealthy), managed("b", unhealthy), managed("a")},
			failed("PodUnhealthy", `ManagedResource "garden/b": it is ill`)},
		"progressing for too long": {[]resourcesv1alpha1.ManagedResource{managed("a", progressing)}, failed("ProgressingRolloutStuck",
			`ManagedResource "garden/a" has been progressing for more than 1h0m0s: 1 of 2`)},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 { // the second time in the reverse order
				got := Aggregate(start.Add(2*time.Hour), nil, test.managedResources, allOfThem, Thresholds{Progressing: time.Hour})
				if len(got) != 1 || (resourcesv1alpha1.NewStatement(got[0].Status, got[0].Reason, got[0].Message)) != test.want || got[0].Type != components {
					t.Errorf("got %+v, want %+v", got, test.want)
				}
				slices.Reverse(test.managedResources)
			}
		})
	}
	for _, threshold := range []time.Duration{0, 2 * time.Hour} {
		got := Aggregate(start.Add(2*time.Hour), nil, []resourcesv1alpha1.ManagedResource{managed("a", progressing)}, allOfThem,
			Thresholds{Progressing: threshold})
		if got[0].Status != resourcesv1alpha1.ConditionTrue {
			t.Errorf("progressing within %s: %+v", threshold, got)
		}
	}
}

// TestAggregateOverTime follows one condition through trouble that comes, changes and goes.
func TestAggregateOverTime(t *testing.T) {
	thresholds := Thresholds{Condition: map[resourcesv1alpha1.ConditionType]time.Duration{components: 5 * time.Minute}}
	well := []resourcesv1alpha1.ManagedResource{managed("a")}
	ill := func(message string) []resourcesv1alpha1.ManagedResource {
		return []resourcesv1alpha1.ManagedResource{managed("a",
			conditionWith(resourcesv1alpha1.ResourcesHealthy, resourcesv1alpha1.ConditionFalse, "PodUnhealthy", message))}
	}
	var conditions []resourcesv1alpha1.Condition
	for _, step := range []struct {
		minute           int
		managedResources []resourcesv1alpha1.ManagedResource
		status           resourcesv1alpha1.ConditionStatus
		transit, update  int
	}{
		{0, ill("cold"), resourcesv1alpha1.ConditionFalse, 0, 0}, // it has never been well
		{1, ill("cold"), resourcesv1alpha1.ConditionFalse, 0, 0},
		{2, well, resourcesv1alpha1.ConditionTrue, 2, 2},
		{3, well, resourcesv1alpha1.ConditionTrue, 2, 2},
		{4, ill("cold"), resourcesv1alpha1.ConditionProgressing, 4, 4},
		{8, ill("flu"), resourcesv1alpha1.ConditionProgressing, 4, 8},
		{9, ill("flu"), resourcesv1alpha1.ConditionProgressing, 4, 8},
		{10, ill("flu"), resourcesv1alpha1.ConditionFalse, 10, 10},
		{11, ill("cold"), resourcesv1alpha1.ConditionFalse, 10, 11},
		{12, well, resourcesv1alpha1.ConditionTrue, 12, 12},
		{13, ill("flu"), resourcesv1alpha1.ConditionProgressing, 13, 13},
		{14, well, resourcesv1alpha1.ConditionTrue, 14, 14},
	} {
		at := func(minute int) time.Time { return start.Add(time.Duration(minute) * time.Minute) }
		conditions = Aggregate(at(step.minute), conditions, step.managedResources, allOfThem, thresholds)
		got := conditions[0]
		if got.Status != step.status || !got.LastTransitionTime.Time.Equal(at(step.transit)) ||
			!got.LastUpdateTime.Time.Equal(at(step.update)) {
			t.Errorf("minute %d: %+v", step.minute, got)
		}
	}
	conditions = Aggregate(start, conditions, ill("flu"), allOfThem, Thresholds{})
	if conditions[0].Status != resourcesv1alpha1.ConditionFalse {
		t.Errorf("without a threshold: %+v", conditions)
	}
}

// TestSelections has the tables of the concept documents of gardenlet and gardener-operator.
func TestSelections(t *testing.T) {
	const controlPlane, system, observability = "ControlPlaneHealthy", "SystemComponentsHealthy", "ObservabilityComponentsHealthy"
	selection := Selection{
		controlPlane: RuntimeDefault(controlPlane), system: TargetDefault(system), observability: Labelled(observability),
		"SeedSystemComponentsHealthy": HasClass,
	}
	const seed, none = "seed", ""
	for _, test := range []struct {
		class, label string
		want         []resourcesv1alpha1.ConditionType
	}{
		{seed, "", []resourcesv1alpha1.ConditionType{controlPlane, "SeedSystemComponentsHealthy"}},
		{seed, controlPlane, []resourcesv1alpha1.ConditionType{controlPlane, "SeedSystemComponentsHealthy"}},
		{seed, observability, []resourcesv1alpha1.ConditionType{observability, "SeedSystemComponentsHealthy"}},
		{seed, system, []resourcesv1alpha1.ConditionType{"SeedSystemComponentsHealthy", system}},
		{none, "", []resourcesv1alpha1.ConditionType{system}},
		{none, controlPlane, []resourcesv1alpha1.ConditionType{system}},
		{none, observability, []resourcesv1alpha1.ConditionType{observability, system}},
		{none, "Other", []resourcesv1alpha1.ConditionType{system}},
		{seed, "Other", []resourcesv1alpha1.ConditionType{"SeedSystemComponentsHealthy"}},
	} {
		mr := managed("a", conditionWith(resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ConditionFalse, "ApplyFailed", "refused"))
		mr.Spec.Class = &test.class
		mr.Labels = map[string]string{LabelCareConditionType: test.label}
		var got []resourcesv1alpha1.ConditionType
		for _, condition := range Aggregate(start, nil, []resourcesv1alpha1.ManagedResource{mr}, selection, Thresholds{}) {
			if condition.Status == resourcesv1alpha1.ConditionFalse {
				got = append(got, condition.Type)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("class %q, label %q: got %v, want %v", test.class, test.label, got, test.want)
		}
	}
}
