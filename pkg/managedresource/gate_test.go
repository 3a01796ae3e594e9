package managedresource

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// TestGateHolds checks that changes wait, and that applied objects are kept.
func TestGateHolds(t *testing.T) {
	manifest := manifestOf(configMapKind, "a", "b")
	closed, cycle := gate{waits: []string{"ManagedResource garden/base does not exist"}}, gate{cycle: []types.NamespacedName{shop, bank, shop}}
	for name, test := range map[string]struct {
		action   action
		manifest *object.Manifest
		applied  string
		want     bool
	}{
		"a new object": {actionCreate, &manifest, "", true},
		"a new object of a kind that is not served":   {actionFail, &manifest, "", true},
		"a new object that another one owns":          {actionConflict, &manifest, "", true},
		"a new object that is only created":           {actionSkip, &manifest, "", false},
		"a changed object":                            {actionApply, &manifest, "before", true},
		"a changed object that is gone":               {actionCreate, &manifest, "before", true},
		"drift":                                       {actionApply, &manifest, "sent", false},
		"an applied object that is gone":              {actionCreate, &manifest, "sent", false},
		"an applied object that is being deleted":     {actionWait, &manifest, "sent", false},
		"an applied object that cannot be read":       {actionFail, &manifest, "sent", false},
		"an applied object as it should be":           {actionSkip, &manifest, "sent", false},
		"an object that left the manifests":           {actionDelete, nil, "sent", true},
		"one that left them, to be kept":              {actionRelease, nil, "sent", true},
		"one that left them, and is gone":             {actionForget, nil, "sent", false},
		"one that left them, and is being deleted":    {actionWait, nil, "sent", false},
		"one that left them, for another one to have": {actionHandOver, nil, "sent", false},
	} {
		change := change{action: test.action, manifest: test.manifest}
		if (gate{}).holds(change, test.applied) {
			t.Errorf("%s waits although the gate is open", name)
		}
		for _, gate := range []gate{closed, cycle} {
			if got := gate.holds(change, test.applied); got != test.want {
				t.Errorf("%s: waits is %v", name, got)
			}
		}
	}
}

// TestGateVerdict checks that a closed gate is reported only if something waits, or if the ManagedResource itself has closed a
// cycle.
func TestGateVerdict(t *testing.T) {
	closed, cycle := gate{waits: []string{"ManagedResource garden/base does not exist"}}, gate{cycle: []types.NamespacedName{shop, bank, shop}}
	closedHere := cycle
	closedHere.closedHere = true
	manifest := manifestOf(configMapKind, "a", "new")
	held := []change{
		{Ref: manifest.Ref, action: actionHold, manifest: &manifest},
		{Ref: manifestOf(configMapKind, "a", "changed").Ref, action: actionHold, manifest: &manifest, observation: live.Observation{UID: "1"}},
		{Ref: manifestOf(configMapKind, "a", "old").Ref, action: actionHold},
	}
	for name, test := range map[string]struct {
		gate   gate
		held   []change
		reason string
		says   []string
	}{
		"nothing waits":             {closed, nil, resourcesv1alpha1.ReasonApplySucceeded, []string{"All resources are applied."}},
		"a cycle made elsewhere":    {cycle, nil, resourcesv1alpha1.ReasonApplySucceeded, []string{"All resources are applied."}},
		"a cycle made here":         {closedHere, nil, resourcesv1alpha1.ReasonDependencyCycle, []string{"garden/shop → garden/bank → garden/shop"}},
		"a cycle, and changes wait": {cycle, held, resourcesv1alpha1.ReasonDependencyCycle, []string{"garden/shop → garden/bank → garden/shop", "to create 1"}},
		"changes wait": {closed, held, resourcesv1alpha1.ReasonDependencyNotReady, []string{
			"Waiting: ManagedResource garden/base does not exist. Until then the revision waits, and what is applied is kept",
			"to create 1 (v1/ConfigMap/a/new)", "to update 1 (v1/ConfigMap/a/changed)", "to remove 1 (v1/ConfigMap/a/old)",
		}},
	} {
		got := tally{gate: test.gate, held: test.held, revision: "the revision"}.verdict()
		if got.Reason != test.reason {
			t.Errorf("%s: the reason is %s: %s", name, got.Reason, got.Message)
		}
		expectContains(t, got.Message, test.says...)
	}
	failed := tally{gate: closed, held: held, failed: []change{{Ref: manifest.Ref, manifest: &manifest, err: errTimeout}}}.verdict()
	if failed.Reason != resourcesv1alpha1.ReasonApplyFailed {
		t.Errorf("an object that cannot be kept is reported as %s", failed.Reason)
	}
	expectContains(t, failed.Message, "Waiting: ", "Could not apply")
}

// TestNotReady checks that a dependency is ready if its conditions report its current generation as applied and healthy.
func TestNotReady(t *testing.T) {
	ready := func() *resourcesv1alpha1.ManagedResource {
		mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
		mr.Status.ObservedGeneration = 3
		for _, conditionType := range []resourcesv1alpha1.ConditionType{resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ResourcesHealthy} {
			mr.Status.Conditions = append(mr.Status.Conditions, resourcesv1alpha1.Condition{Type: conditionType, Status: isTrue})
		}
		return mr
	}
	for want, change := range map[string]func(*resourcesv1alpha1.ManagedResource){
		"": func(*resourcesv1alpha1.ManagedResource) {},
		"is not applied: its generation 3 has not been observed": func(mr *resourcesv1alpha1.ManagedResource) { mr.Status.ObservedGeneration = 2 },
		"is not applied: ApplyFailed": func(mr *resourcesv1alpha1.ManagedResource) {
			mr.Status.Conditions[0].Status, mr.Status.Conditions[0].Reason = isFalse, resourcesv1alpha1.ReasonApplyFailed
		},
		"is not applied: no condition reports this": func(mr *resourcesv1alpha1.ManagedResource) { mr.Status.Conditions = nil },
		"is not healthy: ChecksPending": func(mr *resourcesv1alpha1.ManagedResource) {
			mr.Status.Conditions[1].Status, mr.Status.Conditions[1].Reason = unknown, resourcesv1alpha1.ReasonChecksPending
		},
		"is not healthy: no condition reports this": func(mr *resourcesv1alpha1.ManagedResource) { mr.Status.Conditions = mr.Status.Conditions[:1] },
		"is being deleted": func(mr *resourcesv1alpha1.ManagedResource) {
			mr.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		},
	} {
		mr := ready()
		change(mr)
		if got := notReady(mr, ""); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := notReady(nil, ""); got != "does not exist" {
		t.Errorf("got %q without dependencies", got)
	}
}

// TestNotReadyUntil checks that each level includes the weaker ones, and that the result of the checks takes precedence over
// the reported condition.
func TestNotReadyUntil(t *testing.T) {
	dependency := func(healthy, progressing resourcesv1alpha1.ConditionStatus, foundUnhealthy string) *resourcesv1alpha1.ManagedResource {
		mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
		mr.Status.ObservedGeneration, mr.Status.FoundUnhealthy = 3, foundUnhealthy
		mr.Status.Conditions = []resourcesv1alpha1.Condition{
			{Type: resourcesv1alpha1.ResourcesApplied, Status: isTrue}, {Type: resourcesv1alpha1.ResourcesHealthy, Status: healthy, Reason: "Sick"},
			{Type: resourcesv1alpha1.ResourcesProgressing, Status: progressing, Reason: "Rolling"},
		}
		return mr
	}
	for name, test := range map[string]struct {
		mr   *resourcesv1alpha1.ManagedResource
		want [3]string
	}{
		"all is well":                    {dependency(isTrue, isFalse, ""), [3]string{}},
		"rolling out":                    {dependency(isTrue, isTrue, ""), [3]string{"", "", "is not rolled out: Rolling"}},
		"unhealthy":                      {dependency(isFalse, isTrue, ""), [3]string{"", "is not healthy: Sick", "is not healthy: Sick"}},
		"unhealthy, not reported so far": {dependency(isTrue, isTrue, "Found"), [3]string{"", "is not healthy: Found", "is not healthy: Found"}},
	} {
		if got := readiness(test.mr); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
		if notReady(test.mr, "") != test.want[1] {
			t.Errorf("%s: the default is not Healthy", name)
		}
	}
}

// TestGatesOf checks that a dependency for the creation counts until everything was applied once.
func TestGatesOf(t *testing.T) {
	checksum := "sum"
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "garden"}}
	mr.Spec.DependsOn = []resourcesv1alpha1.Dependency{{Name: "once", For: resourcesv1alpha1.ForCreation}, {Name: "always"}, {Name: "too", For: resourcesv1alpha1.ForChanges}}
	if got := len(gatesOf(mr)); got != 3 {
		t.Errorf("before the creation, %d dependencies count", got)
	}
	mr.Status.SecretsDataChecksum = &checksum
	if got := gateNamesOf(mr); len(got) != 2 || got[0].Name != "always" || got[1].Name != "too" {
		t.Errorf("after the creation, %v count", got)
	}
}
