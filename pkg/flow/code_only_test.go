package flow

import (
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

func TestOnlyTheCodeHasChanged(t *testing.T) {
	v2 := rules()
	v2.Version = "v2"
	first := Plan{Bundles: []Bundle{bundle("a", "1"), bundle("b", "1")}, Inputs: "i1"}
	live := emitted(t, first)
	codeOnly := func(live Live, plan Plan, version string) bool {
		return lastEmission(live.owned(owner)).codeOnly(plan, version)
	}
	changed := Plan{Bundles: []Bundle{bundle("a", "2"), bundle("b", "2")}, Inputs: "i1"}
	if codeOnly(live, changed, "v1") {
		t.Error("the continuation of an emission counts as a change of the code")
	}
	if !codeOnly(live, changed, "v2") {
		t.Error("a change of the code is not recognized")
	}
	if byUser := (Plan{Bundles: changed.Bundles, Inputs: "i2"}); codeOnly(live, byUser, "v2") {
		t.Error("a change by the user is held")
	}
	decision, err := Decide(owner, changed, live, v2)
	if err != nil {
		t.Fatal(err)
	}
	decision.Steps = decision.Steps[1:] // not the first step, so that the emission numbers of the bundles differ
	half := carriedOut(t, live, decision)
	if codeOnly(half, changed, "v2") {
		t.Error("a rollout that has begun is held after a restart")
	}
	// The user changes the inputs and changes them back: one bundle still has the inputs of an older emission.
	there := carriedOut(t, live, decide(t, Plan{Bundles: []Bundle{bundle("a", "9"), bundle("b", "1")}, Inputs: "i9"}, live))
	if codeOnly(there, Plan{Bundles: changed.Bundles, Inputs: "i1"}, "v2") {
		t.Error("a change back by the user is held")
	}
}

func TestRolloutsArePaced(t *testing.T) {
	pacing := Pacing{Budget: 5, Nodes: 3, MaxFailed: 2, Retry: time.Minute}
	opens := start.Add(time.Hour)
	for name, test := range map[string]struct {
		bundles, rolling int
		nodes, nodesRoll bool
		window           *Window
		fleet            Fleet
		want             string
		next             time.Time
	}{
		"a free slot":        {bundles: 2, fleet: Fleet{Rolling: 3}},
		"over the budget":    {bundles: 3, fleet: Fleet{Rolling: 3}, want: "at most 5", next: start.Add(time.Minute)},
		"more than all":      {bundles: 12},
		"adds one":           {bundles: 3, rolling: 2, fleet: Fleet{Rolling: 3}, want: "at most 5", next: start.Add(time.Minute)},
		"adds none":          {bundles: 3, rolling: 3, fleet: Fleet{Rolling: 30}},
		"adds none, stopped": {bundles: 3, rolling: 3, fleet: Fleet{Failed: 2}, want: "2 owners fail", next: start.Add(time.Minute)},
		"nodes":              {bundles: 1, nodes: true, fleet: Fleet{Nodes: 2}},
		"too many nodes":     {bundles: 1, nodes: true, fleet: Fleet{Nodes: 3}, want: "of at most 3 owners", next: start.Add(time.Minute)},
		"its nodes roll out": {bundles: 1, nodes: true, nodesRoll: true, fleet: Fleet{Nodes: 3}},
		"no nodes":           {bundles: 1, fleet: Fleet{Nodes: 3}},
		"a closed window":    {bundles: 1, window: &Window{Opens: opens}, want: "window is closed", next: opens},
		"an open window":     {bundles: 1, window: &Window{Open: true}},
		"one failure":        {bundles: 1, fleet: Fleet{Failed: 1}},
		"too many failures":  {bundles: 1, fleet: Fleet{Failed: 2}, want: "2 owners fail", next: start.Add(time.Minute)},
		"failures in window": {bundles: 1, window: &Window{Open: true}, fleet: Fleet{Failed: 2}, want: "2 owners fail", next: start.Add(time.Minute)},
	} {
		why, next := pacing.Admit(Change{Bundles: test.bundles, Rolling: test.rolling, Nodes: test.nodes, NodesRoll: test.nodesRoll}, test.window, test.fleet, start)
		if test.want == "" && why != "" || !strings.Contains(why, test.want) || !next.Equal(test.next) {
			t.Errorf("%s: %q at %v, want %q at %v", name, why, next, test.want, test.next)
		}
	}
}

func TestAStormIsAQueue(t *testing.T) {
	const owners = 200
	v2 := rules()
	v2.Version = "v2"
	scheme := testScheme()
	var all []client.Object
	lives := map[string]Live{}
	for i := range owners {
		o := Owner{Flow: "shoot", UID: types.UID(fmt.Sprint("uid-", i)), Name: fmt.Sprint("s", i)}
		live := emittedFor(t, o)
		lives[o.Name] = live
		for _, mr := range live.ManagedResources {
			all = append(all, mr)
		}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(all...).Build()
	pacer := &Pacer{Pacing: Pacing{Budget: 10, MaxFailed: 3, Retry: time.Minute}, Clock: testingclock.NewFakePassiveClock(start)}
	admitted := 0
	for i := range owners {
		o := Owner{Flow: "shoot", UID: types.UID(fmt.Sprint("uid-", i)), Name: fmt.Sprint("s", i)}
		plan := planFor(o, "2")
		decision, err := Decide(o, plan, lives[o.Name], v2)
		if err != nil {
			t.Fatal(err)
		}
		wait, next, err := pacer.hold(t.Context(), c, o, plan, lives[o.Name], decision, "v2")
		if err != nil {
			t.Fatal(err)
		}
		if wait == nil {
			admitted++
			continue
		}
		if !next.Equal(start.Add(time.Minute)) || !wait.HoldsAll {
			t.Fatalf("wait %+v, next %v", wait, next)
		}
		plan.Waits = append(plan.Waits, *wait)
		plan.Tombstones = []Tombstone{{Key: Key{Namespace: o.Name, Name: "c"}}}
		if decision, err = Decide(o, plan, lives[o.Name], v2); err != nil || len(decision.Steps) > 0 {
			t.Fatalf("held, and yet %q (%v)", steps(decision), err)
		}
	}
	if admitted != 5 { // with two bundles each, and a budget of ten
		t.Errorf("%d owners were admitted", admitted)
	}
}

func planFor(o Owner, value string) Plan {
	var plan Plan
	for _, name := range []string{"a", "b"} {
		plan.Bundles = append(plan.Bundles, Bundle{Key: Key{Namespace: o.Name, Name: name}, Objects: []client.Object{configMap(name, value)}})
	}
	plan.Inputs = "same"
	return plan
}

func emittedFor(t *testing.T, o Owner) Live {
	t.Helper()
	live := nothingLive()
	decision, err := Decide(o, planFor(o, "1"), live, rules())
	if err != nil {
		t.Fatal(err)
	}
	live = carriedOut(t, live, decision)
	for _, mr := range live.ManagedResources {
		mr.Labels[LabelOwner] = string(o.UID)
	}
	return live
}

func TestTheResourceManagerDoesNotDeleteItself(t *testing.T) {
	self := bundle("resource-manager", "1")
	self.AppliesItself = true
	live := emitted(t, Plan{Bundles: []Bundle{self}})
	if !ptr.Deref(live.ManagedResources[named("resource-manager")].Spec.KeepObjects, false) {
		t.Error("the objects of the resource-manager are not kept")
	}
	if decision := decide(t, Plan{Bundles: []Bundle{self}}, live); len(decision.Steps) > 0 {
		t.Errorf("steps %q", steps(decision))
	}
	lease := func(age time.Duration) *coordinationv1.Lease {
		return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: ptr.To(metav1.NewMicroTime(start.Add(-age)))}}
	}
	for name, test := range map[string]struct {
		lease *coordinationv1.Lease
		since time.Duration
		want  string
		next  time.Duration
	}{
		"it lives":             {lease(time.Second), time.Hour, "", 10*time.Minute - time.Second},
		"stale":                {lease(11 * time.Minute), time.Hour, "for 11m0s", 10 * time.Minute},
		"stale, seen just now": {lease(time.Hour), time.Minute, "", 9 * time.Minute},
		"never, for long":      {nil, time.Hour, "no resource-manager has taken its lease", 10 * time.Minute},
		"never, seen just now": {nil, time.Minute, "", 9 * time.Minute},
	} {
		why, next := BreakGlass(test.lease, start.Add(-test.since), 10*time.Minute, start)
		if test.want == "" && why != "" || !strings.Contains(why, test.want) || !next.Equal(start.Add(test.next)) {
			t.Errorf("%s: %q, next %v", name, why, next.Sub(start))
		}
	}
}

func TestPlansHaveAClock(t *testing.T) {
	plan := Plan{
		Next: start.Add(time.Hour),
		Waits: []Wait{
			{Name: "past", Reason: "p", Deadline: start.Add(-time.Minute), Code: corev1beta1.ErrorRetryableInfraDependencies},
			{Name: "soon", Deadline: start.Add(time.Minute)}, {Name: "never"},
		},
	}
	if next := plan.NextAt(start); !next.Equal(start.Add(time.Minute)) {
		t.Errorf("next %v", next)
	}
	if next := plan.NextAt(start.Add(2 * time.Minute)); !next.Equal(start.Add(time.Hour)) {
		t.Errorf("then %v", next)
	}
	if next := plan.NextAt(start.Add(2 * time.Hour)); !next.IsZero() {
		t.Errorf("at last %v", next)
	}
	report := Progress(Operation{Name: "Reconciliation", RetryUntil: start.Add(time.Hour)}, owner, Result{Plan: plan, Live: nothingLive()}, start)
	if len(report.LastErrors) != 1 || *report.LastErrors[0].TaskID != "past" || report.LastErrors[0].Codes[0] != corev1beta1.ErrorRetryableInfraDependencies ||
		report.LastOperation.State != corev1beta1.LastOperationStateError {
		t.Errorf("%+v", report)
	}
	report = Progress(Operation{Name: "Reconciliation", RetryUntil: start}, owner, Result{Plan: plan, Live: nothingLive()}, start)
	if report.LastOperation.State != corev1beta1.LastOperationStateFailed {
		t.Errorf("after the time for retries: %+v", report)
	}
}

func TestChoicesAreKept(t *testing.T) {
	zones := []string{"a", "b", "c", "d", "e"}
	chosen := Choose("uid-1", zones, 3)
	if again := Choose("uid-1", []string{"e", "d", "c", "b", "a", "a"}, 3); fmt.Sprint(again) != fmt.Sprint(chosen) {
		t.Errorf("%v, then %v", chosen, again)
	}
	for _, zone := range zones {
		if !strings.Contains(fmt.Sprint(chosen), zone) {
			var less []string
			for _, other := range zones {
				if other != zone {
					less = append(less, other)
				}
			}
			if again := Choose("uid-1", less, 3); fmt.Sprint(again) != fmt.Sprint(chosen) {
				t.Errorf("the choice changed without zone %s, which was not chosen: %v, then %v", zone, chosen, again)
			}
		}
	}
	b := bundle("namespace", "1")
	b.Choices = map[string]string{"zones": strings.Join(chosen, ",")}
	live := emitted(t, Plan{Bundles: []Bundle{b}})
	if value, known, err := live.Choice(owner, named("namespace"), "zones"); err != nil || !known || value != strings.Join(chosen, ",") {
		t.Errorf("remembered %q, %t, %v", value, known, err)
	}
	if _, known, err := live.Choice(owner, named("other"), "zones"); err != nil || known {
		t.Errorf("for a bundle that does not exist: %t, %v", known, err)
	}
	live.ManagedResources[named("namespace")].Annotations[AnnotationChoices] = "{"
	if _, _, err := live.Choice(owner, named("namespace"), "zones"); err == nil {
		t.Error("an unreadable choice counts as not chosen")
	}
}

func TestSecretsThatAreGoneAreCreatedAgain(t *testing.T) {
	plan := Plan{Bundles: []Bundle{bundle("a", "1")}}
	live := emitted(t, plan)
	mr := live.ManagedResources[named("a")]
	if len(mr.Annotations) == 0 || !strings.Contains(fmt.Sprint(mr.Annotations), "reference.resources.gardener.cloud/secret-") {
		t.Errorf("the garbage collector does not see the reference: %v", mr.Annotations)
	}
	clear(live.Secrets)
	if decision := decide(t, plan, live); steps(decision) != "Restore a" {
		t.Errorf("steps %q", steps(decision))
	}
	// A bundle that is held at the current revision can be restored. A bundle that is held at an older one cannot, which is
	// reported as a problem.
	wait := []Wait{{Name: "w", Holds: []Key{named("a")}}}
	if decision := decide(t, Plan{Bundles: plan.Bundles, Waits: wait}, live); steps(decision) != "Restore a" {
		t.Errorf("held: steps %q", steps(decision))
	}
	decision := decide(t, Plan{Bundles: []Bundle{bundle("a", "2")}, Waits: wait}, live)
	if len(decision.Steps) > 0 || !strings.Contains(decision.Problems[named("a")], "do not exist") {
		t.Errorf("held at an older one: steps %q, problems %v", steps(decision), decision.Problems)
	}
}

func TestTheFinalizerWaitsForTheAPIServersList(t *testing.T) {
	mr := func(namespace, name, uid string) client.Object {
		return &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: map[string]string{LabelFlow: owner.Flow, LabelOwner: uid},
		}}
	}
	c := fake.NewClientBuilder().WithScheme(testScheme()).
		WithObjects(mr("garden", "namespace-one", "uid-1"), mr("shoot--dev--one", "app", "uid-1"), mr("garden", "other", "uid-2")).Build()
	keys, err := Remaining(t.Context(), c, owner)
	if err != nil || joinWith(keys, ",") != "garden/namespace-one,shoot--dev--one/app" {
		t.Errorf("%v, %v", keys, err)
	}
	if _, err := Remaining(t.Context(), c, Owner{Flow: "shoot"}); err == nil {
		t.Error("no error for an owner without a UID; its finalizer would be removed")
	}
}

func TestAnOlderDefinitionHoldsTheWholePlan(t *testing.T) {
	spec := apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"secretRefs":   {},
		"injectLabels": {AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true}},
		"dependsOn": {Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{
			Properties: map[string]apiextensionsv1.JSONSchemaProps{"name": {}},
		}}},
	}}
	schema := &Schema{&apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec}}}
	plan := Plan{Bundles: []Bundle{bundle("a", "1"), bundle("b", "1", "a")}}
	plan.Bundles[0].Spec.InjectLabels = map[string]string{"any": "label"}
	waits := schema.waits(plan)
	if len(waits) != 1 || !strings.Contains(waits[0].Reason, "[spec.dependsOn[].namespace]") {
		t.Fatalf("waits %+v", waits)
	}
	plan.Waits = waits
	if decision := decide(t, plan, nothingLive()); len(decision.Steps) > 0 {
		t.Errorf("a part of the plan is written: %q", steps(decision))
	}
	plan.Bundles[1].Spec.DependsOn[0].Namespace = ""
	if waits := schema.waits(plan); len(waits) > 0 {
		t.Errorf("waits %+v", waits)
	}
}
