package managedresource

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/health"
)

const (
	isTrue, isFalse, unknown = resourcesv1alpha1.ConditionTrue, resourcesv1alpha1.ConditionFalse, resourcesv1alpha1.ConditionUnknown
	// Messages of conditions.
	deleting  = "The resources are currently being deleted."
	unwatched = "ManagedResource is marked to be ignored. Its objects are not checked."
)

// conditionsOf returns conditions of health.
func conditionsOf(healthy, progressing resourcesv1alpha1.Statement) []resourcesv1alpha1.Condition {
	var conditions []resourcesv1alpha1.Condition
	if healthy != (resourcesv1alpha1.Statement{}) {
		conditions = resourcesv1alpha1.SetCondition(conditions, resourcesv1alpha1.ResourcesHealthy, healthy, time.Unix(1, 0))
	}
	if progressing != (resourcesv1alpha1.Statement{}) {
		conditions = resourcesv1alpha1.SetCondition(conditions, resourcesv1alpha1.ResourcesProgressing, progressing, time.Unix(1, 0))
	}
	return conditions
}

func saying(conditions []resourcesv1alpha1.Condition) [2]resourcesv1alpha1.Statement {
	said := func(conditionType resourcesv1alpha1.ConditionType) resourcesv1alpha1.Statement {
		condition := resourcesv1alpha1.ConditionOf(conditions, conditionType)
		return resourcesv1alpha1.NewStatement(condition.Status, condition.Reason, condition.Message)
	}
	return [2]resourcesv1alpha1.Statement{said(resourcesv1alpha1.ResourcesHealthy), said(resourcesv1alpha1.ResourcesProgressing)}
}

// TestFirstWord checks that, after an apply, existing health conditions are left to the health controller. The exceptions are
// rollouts that begin and objects that must be checked.
func TestFirstWord(t *testing.T) {
	type pair = [2]resourcesv1alpha1.Statement
	say := resourcesv1alpha1.NewStatement
	none := pair{}
	well := pair{say(isTrue, "ResourcesHealthy", "well"), say(isFalse, "ResourcesRolledOut", "done")}
	sick := pair{say(isFalse, "PodUnhealthy", "sick"), say(isFalse, "ResourcesRolledOut", "done")}
	rolling := pair{say(isTrue, "ResourcesHealthy", "well"), say(isTrue, "DeploymentProgressing", "1 of 2")}
	pending := pair{say(unknown, "ChecksPending", "wait"), say(unknown, "ChecksPending", "wait")}
	ignored := pair{say(isTrue, "ManagedResourceIgnored", "ignored"), say(isFalse, "ManagedResourceIgnored", "ignored")}
	for name, test := range map[string]struct{ before, found, want pair }{
		"the first time":              {none, well, well},
		"sick from the start":         {none, sick, sick},
		"looked at for the first":     {pending, rolling, rolling},
		"no longer ignored":           {ignored, sick, sick},
		"starting":                    {pending, pair{sick[0], rolling[1]}, pair{health.HealthPending(), rolling[1]}},
		"well as before":              {well, well, well},
		"worse":                       {well, sick, well},
		"better":                      {sick, well, sick},
		"a rollout begins":            {well, rolling, rolling},
		"a rollout of what is sick":   {sick, rolling, pair{sick[0], rolling[1]}},
		"a rollout goes on":           {rolling, well, rolling},
		"to be looked at":             {well, pending, pending},
		"sick, others to be seen":     {well, pair{sick[0], pending[1]}, well},
		"healthy is not known":        {well, pair{pending[0], well[1]}, well},
		"only progressing is missing": {pair{well[0], {}}, pair{sick[0], rolling[1]}, pair{well[0], rolling[1]}},
	} {
		before := conditionsOf(test.before[0], test.before[1])
		got := initialHealth(before, findingsOf(test.found), findingsOf(well), time.Unix(2, 0))
		if saying(got) != test.want {
			t.Errorf("%s:\n got %+v\nwant %+v", name, saying(got), test.want)
		}
	}
	unseen := findingsOf(pending)
	unseen.unseen = true
	awaited := findingsOf(pair{sick[0], rolling[1]})
	awaited.awaited = true
	for name, test := range map[string]struct {
		found, changed findings
		want           pair
	}{
		"the changed object is not healthy":               {findingsOf(sick), findingsOf(sick), sick},
		"it is being rolled out":                          {findingsOf(pair{sick[0], rolling[1]}), findingsOf(pair{sick[0], rolling[1]}), pair{well[0], rolling[1]}},
		"it is being rolled out, and others wait for it":  {findingsOf(pair{sick[0], rolling[1]}), awaited, pair{health.HealthPending(), rolling[1]}},
		"it is not healthy while another is rolled out":   {findingsOf(pair{sick[0], rolling[1]}), findingsOf(sick), pair{health.HealthPending(), rolling[1]}},
		"another one is not healthy":                      {findingsOf(sick), findingsOf(well), well},
		"it was not seen while another one is rolled out": {findingsOf(pair{pending[0], rolling[1]}), unseen, pair{pending[0], rolling[1]}},
		"it is just not known":                            {findingsOf(pair{pending[0], rolling[1]}), findingsOf(pending), pair{well[0], rolling[1]}},
	} {
		if got := saying(initialHealth(conditionsOf(well[0], well[1]), test.found, test.changed, time.Unix(2, 0))); got != test.want {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, test.want)
		}
	}
}

func findingsOf(statements [2]resourcesv1alpha1.Statement) findings {
	return findings{healthy: statements[0], progressing: statements[1]}
}

func TestConditionsOfHealth(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(2, 0))
	p := &pass{Reconciler: &Reconciler{Clock: clock}}
	type pair = [2]resourcesv1alpha1.Statement
	say := resourcesv1alpha1.NewStatement
	for name, test := range map[string]struct {
		change func([]resourcesv1alpha1.Condition) []resourcesv1alpha1.Condition
		want   pair
	}{
		"pending": {p.checksPending, pair{
			say(unknown, "ChecksPending", "The health checks have not yet been executed for the current set of resources."),
			say(unknown, "ChecksPending", "Checks have not yet been executed for the current set of resources."),
		}},
		"deleting": {p.beingDeleted, pair{say(isFalse, "DeletionPending", deleting), say(isTrue, "DeletionPending", deleting)}},
		"ignored":  {p.unchecked, pair{say(isTrue, "ManagedResourceIgnored", unwatched), say(isFalse, "ManagedResourceIgnored", unwatched)}},
	} {
		got := test.change([]resourcesv1alpha1.Condition{{Type: "Theirs", Status: isTrue}})
		if saying(got) != test.want || len(got) != 3 || got[0].Type != "Theirs" {
			t.Errorf("%s: got %+v", name, got)
		}
		clock.Step(time.Minute)
		if again := test.change(got); !again[1].LastUpdateTime.Equal(&got[1].LastUpdateTime) {
			t.Errorf("%s: the same conditions cause another update", name)
		}
	}
}

// cluster is a fake source cluster in which another controller writes first, so that the first patch is refused.
type cluster struct {
	client.Client
	fresh   resourcesv1alpha1.ManagedResource
	patches [][]byte
}

func (c *cluster) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	c.fresh.DeepCopyInto(obj.(*resourcesv1alpha1.ManagedResource)) //nolint:errcheck // nothing else is read
	return nil
}

func (c *cluster) Status() client.SubResourceWriter { return statusWriter{cluster: c} }

type statusWriter struct {
	client.SubResourceWriter
	cluster *cluster
}

func (w statusWriter) Patch(_ context.Context, obj client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	body, err := patch.Data(obj)
	if err != nil {
		return err
	}
	w.cluster.patches = append(w.cluster.patches, body)
	var sent metav1.PartialObjectMetadata
	if err := json.Unmarshal(body, &sent); err != nil {
		return err
	}
	if sent.ResourceVersion != w.cluster.fresh.ResourceVersion {
		return apierrors.NewConflict(schema.GroupResource{Resource: "managedresources"}, obj.GetName(), nil)
	}
	return nil
}

// TestFinalStatusAfterAConflict checks that concurrent changes by the health controller are kept, unless the inventory has
// changed.
func TestFinalStatusAfterAConflict(t *testing.T) {
	say := resourcesv1alpha1.NewStatement
	done := say(isFalse, "ResourcesRolledOut", "done")
	for name, test := range map[string]struct {
		change func(*resourcesv1alpha1.ManagedResource)
		want   int // patches
	}{
		"a condition": {func(*resourcesv1alpha1.ManagedResource) {}, 2},
		"another inventory": {func(mr *resourcesv1alpha1.ManagedResource) {
			mr.Status.Resources = []resourcesv1alpha1.ObjectReference{{}}
		}, 1},
		"created anew": {func(mr *resourcesv1alpha1.ManagedResource) { mr.UID = "another" }, 1},
	} {
		mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "shop", UID: "u", ResourceVersion: "1"}}
		mr.Status.Conditions = conditionsOf(say(isTrue, "ResourcesHealthy", "well"), done)
		source := &cluster{fresh: *mr.DeepCopy()}
		source.fresh.ResourceVersion = "2"
		source.fresh.Status.Conditions = conditionsOf(say(isFalse, "PodUnhealthy", "sick"), done)
		test.change(&source.fresh)
		r := NewReconciler(Reconciler{Source: source, Direct: source, Clock: clocktesting.NewFakeClock(time.Unix(2, 0))})
		p := r.newPass(mr)
		conditions := func(base []resourcesv1alpha1.Condition) []resourcesv1alpha1.Condition {
			return p.conditions(base, resourcesv1alpha1.NewStatement(isTrue, resourcesv1alpha1.ReasonApplySucceeded, "applied"))
		}
		status := *mr.Status.DeepCopy()
		status.Conditions = conditions(status.Conditions)
		err := p.storeFinalStatus(t.Context(), status, conditions)
		if len(source.patches) != test.want || apierrors.IsConflict(err) != (test.want == 1) {
			t.Errorf("%s: %d patches, and the error %v", name, len(source.patches), err)
		}
		if test.want != 2 {
			continue
		}
		var sent resourcesv1alpha1.ManagedResource
		if err := json.Unmarshal(source.patches[1], &sent); err != nil {
			t.Fatal(err)
		}
		healthy := resourcesv1alpha1.ConditionOf(sent.Status.Conditions, resourcesv1alpha1.ResourcesHealthy)
		ready := resourcesv1alpha1.ConditionOf(sent.Status.Conditions, resourcesv1alpha1.Ready)
		if healthy.Reason != "PodUnhealthy" || ready.Status != isFalse || ready.Message != "sick" {
			t.Errorf("%s: ResourcesHealthy has the reason %q, Ready is %s with %q", name, healthy.Reason, ready.Status, ready.Message)
		}
	}
}

// TestNotSettledAfterBeingIgnored checks that the conditions are updated, even if nothing else changed.
func TestNotSettledAfterBeingIgnored(t *testing.T) {
	mr := &resourcesv1alpha1.ManagedResource{}
	mr.Status.AppliedInputs = "x"
	mr.Status.Conditions = []resourcesv1alpha1.Condition{
		{Type: resourcesv1alpha1.ResourcesApplied, Status: isTrue, Reason: resourcesv1alpha1.ReasonManagedResourceIgnored},
	}
	p := &pass{Reconciler: &Reconciler{}, mr: mr}
	if settled, _, err := p.upToDate(t.Context()); settled || err != nil {
		t.Errorf("settled is %v: %v", settled, err)
	}
}
