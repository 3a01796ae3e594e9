package managedseed

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/gardenletdeployer"
)

func TestShootReconciled(t *testing.T) {
	shoot := func(state corev1beta1.LastOperationState, observed int64) *corev1beta1.Shoot {
		s := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Name: "blue", Generation: 2}}
		s.Status.ObservedGeneration = observed
		if state != "" {
			s.Status.LastOperation = &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeCreate, State: state}
		}
		return s
	}
	for name, test := range map[string]struct {
		shoot *corev1beta1.Shoot
		want  string
	}{
		"on another Seed": {nil, "is not on this Seed"},
		"new":             {shoot("", 2), "was not reconciled yet"},
		"changed":         {shoot(corev1beta1.LastOperationStateSucceeded, 1), "not reconciled yet"},
		"running":         {shoot(corev1beta1.LastOperationStateProcessing, 2), "The operation Create of Shoot blue is Processing"},
		"failed":          {shoot(corev1beta1.LastOperationStateFailed, 2), "is Failed"},
		"reconciled":      {shoot(corev1beta1.LastOperationStateSucceeded, 2), ""},
	} {
		got := shootReconciled(test.shoot, "blue")
		if test.want == "" && got.status != corev1beta1.ConditionTrue || test.want != "" && (got.status != corev1beta1.ConditionFalse || !strings.Contains(got.message, test.want)) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestPlans checks that the gardenlet waits for its credentials and is deleted before its namespace.
func TestPlans(t *testing.T) {
	for name, plan := range map[string]flow.Plan{
		"waiting": planFor("shoot--a--b", nil, "no credentials"), "deployed": planFor("shoot--a--b", nil, ""),
		"deletion": deletionPlan("shoot--a--b", false), "the end of the deletion": deletionPlan("shoot--a--b", true),
	} {
		if err := plan.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	waiting := planFor("shoot--a--b", nil, "no credentials")
	if len(waiting.Waits) != 1 || len(waiting.Waits[0].Holds) != 1 || waiting.Waits[0].Holds[0] != gardenletKey("shoot--a--b") {
		t.Errorf("the waits are %+v", waiting.Waits)
	}
	if len(deletionPlan("shoot--a--b", false).Tombstones) != 1 || len(deletionPlan("shoot--a--b", true).Tombstones) != 2 {
		t.Error("the namespace is deleted too early, or never")
	}
}

// TestSeedRegistered checks the condition SeedRegistered for each result of an emission.
func TestSeedRegistered(t *testing.T) {
	key := gardenletKey("shoot--a--b")
	bundles := flow.Plan{Bundles: []flow.Bundle{{Key: key}}}
	live := func(status resourcesv1alpha1.ConditionStatus) flow.Live {
		mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Generation: 1}}
		mr.Status.ObservedGeneration = 1
		for _, kind := range []resourcesv1alpha1.ConditionType{resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ResourcesHealthy} {
			mr.Status.Conditions = append(mr.Status.Conditions, resourcesv1alpha1.Condition{Type: kind, Status: status, Message: "no node"})
		}
		mr.Status.Conditions = append(mr.Status.Conditions, resourcesv1alpha1.Condition{
			Type: resourcesv1alpha1.ResourcesProgressing, Status: resourcesv1alpha1.ConditionFalse,
		})
		return flow.Live{ManagedResources: map[flow.Key]*resourcesv1alpha1.ManagedResource{key: mr}}
	}
	healthy := flow.Result{Plan: bundles, Live: live(resourcesv1alpha1.ConditionTrue)}
	seed := &corev1beta1.Seed{}
	for name, test := range map[string]struct {
		result flow.Result
		seed   *corev1beta1.Seed
		step   gardenletdeployer.Step
		wait   string
		status corev1beta1.ConditionStatus
		text   string
	}{
		"a foreign ManagedResource": {flow.Result{Decision: flow.Decision{Problems: map[flow.Key]string{key: "of another owner"}}}, seed, gardenletdeployer.Step{}, "",
			corev1beta1.ConditionFalse, "of another owner"},
		"no access":      {healthy, seed, gardenletdeployer.Step{Missing: "gone"}, "gone", corev1beta1.ConditionFalse, "no access to the garden: gone"},
		"no namespace":   {healthy, seed, gardenletdeployer.Step{}, "no namespace", corev1beta1.ConditionProgressing, "not deployed yet: no namespace"},
		"written":        {flow.Result{Plan: bundles, Written: []flow.Key{key}}, seed, gardenletdeployer.Step{}, "", corev1beta1.ConditionProgressing, "has not observed"},
		"not healthy":    {flow.Result{Plan: bundles, Live: live(resourcesv1alpha1.ConditionFalse)}, seed, gardenletdeployer.Step{}, "", corev1beta1.ConditionProgressing, "no node"},
		"not registered": {healthy, nil, gardenletdeployer.Step{}, "", corev1beta1.ConditionProgressing, "has not registered its Seed"},
		"registered":     {healthy, seed, gardenletdeployer.Step{}, "", corev1beta1.ConditionTrue, "is registered"},
	} {
		got := seedRegistered(test.result, test.seed, test.step, test.wait)
		if got.kind != v1alpha1.SeedRegistered || got.status != test.status || !strings.Contains(got.message, test.text) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
