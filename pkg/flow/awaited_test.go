package flow

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// TestHealthThatNothingAwaits checks that operations, rotations and the rollout of a version of the program do not wait for the health of
// objects that a condition reports, but that they wait until the objects are applied.
func TestHealthThatNothingAwaits(t *testing.T) {
	unawaited := bundle("b", "1")
	AwaitNoHealth(&unawaited)
	for name, test := range map[string]struct {
		bundle  Bundle
		kind    resourcesv1alpha1.ConditionType
		counts  bool
		rolling int
	}{
		"unhealthy":                        {unawaited, resourcesv1alpha1.ResourcesHealthy, false, 0},
		"not applied":                      {unawaited, resourcesv1alpha1.ResourcesApplied, true, 1},
		"unhealthy, and its health counts": {bundle("b", "1"), resourcesv1alpha1.ResourcesHealthy, true, 1},
	} {
		plan := Plan{Bundles: []Bundle{bundle("a", "1"), test.bundle}}
		live := emitted(t, plan)
		mr := live.ManagedResources[named("b")]
		condition(mr, test.kind, "False", "Failed", "no node")
		for i := range mr.Status.Conditions {
			mr.Status.Conditions[i].LastTransitionTime = metav1.NewTime(start.Add(-time.Hour))
		}
		result := Result{Plan: plan, Decision: decide(t, plan, live), Live: live}
		report := Progress(Operation{Name: "Reconciliation"}, owner, result, start)
		if succeeded := report.LastOperation.State == corev1beta1.LastOperationStateSucceeded; succeeded == test.counts || len(report.LastErrors) > 0 != test.counts {
			t.Errorf("%s: %+v", name, report)
		}
		why, err := Differences(owner, plan, live, rules())
		if err != nil || len(why) > 0 != test.counts {
			t.Errorf("%s: a rotation waits for %q: %v", name, why, err)
		}
		fleet := FleetOf([]resourcesv1alpha1.ManagedResource{*mr}, "v2")
		if fleet.Rolling != test.rolling {
			t.Errorf("%s: the fleet is %+v, want %d that roll out", name, fleet, test.rolling)
		}
	}
}
