package flow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// The tests of this file check what holds for every flow, whatever it knows and whenever it stops.

// samplePlan is a flow in which any subset of the observed facts may be unknown.
func samplePlan(known map[string]bool) Plan {
	var plan Plan
	add := func(name string, needs []string, on ...string) {
		for _, need := range needs {
			if !known[need] {
				plan.Waits = append(plan.Waits, Wait{Name: need, Reason: need + " is not known", Holds: []Key{named(name)}})
				return
			}
		}
		b := bundle(name, strings.Join(needs, ","), on...)
		if name == "worker" {
			b.Objects = append(b.Objects, extension("Worker", "one"))
		}
		plan.Bundles = append(plan.Bundles, b)
	}
	add("namespace", nil)
	add("infrastructure", []string{"credentials"}, "namespace")
	add("kube-apiserver", []string{"certificates"}, "namespace")
	add("worker", []string{"infrastructure-status", "credentials"}, "infrastructure")
	add("addons", []string{"certificates", "infrastructure-status"}, "kube-apiserver")
	return plan
}

func TestNothingIsDeletedBecauseSomethingIsUnknown(t *testing.T) {
	names := []string{"credentials", "certificates", "infrastructure-status"}
	all := map[string]bool{}
	for _, name := range names {
		all[name] = true
	}
	live := emitted(t, samplePlan(all))
	for subset := range 1 << len(names) {
		known := map[string]bool{}
		for i, name := range names {
			known[name] = subset>>i&1 == 1
		}
		decision := decide(t, samplePlan(known), live)
		if len(decision.Steps) > 0 {
			t.Errorf("known %v: steps %q", known, steps(decision))
		}
		if len(decision.Unmentioned) > 0 {
			t.Errorf("known %v: the waits do not hold %v", known, decision.Unmentioned)
		}
	}
}

func TestProtectedObjectsLeaveOnlyIfThatIsDeclared(t *testing.T) {
	live := emitted(t, samplePlan(map[string]bool{"credentials": true, "certificates": true, "infrastructure-status": true}))
	without := bundle("worker", "x", "infrastructure")
	decision := decide(t, Plan{Bundles: []Bundle{without}}, live)
	if len(decision.Steps) > 0 || !strings.Contains(decision.Problems[named("worker")], "would delete the protected objects Worker.extensions.gardener.cloud") {
		t.Errorf("steps %q, problems %v", steps(decision), decision.Problems)
	}
	without.Removes = []object.Key{{Group: "extensions.gardener.cloud", Kind: "Worker", Namespace: "shoot--dev--one", Name: "one"}}
	if decision := decide(t, Plan{Bundles: []Bundle{without}}, live); steps(decision) != "Update worker" {
		t.Errorf("declared: steps %q", steps(decision))
	}
}

func TestRotationDoesNotMoveOnStaleReadiness(t *testing.T) {
	old, plan := Plan{Bundles: []Bundle{bundle("a", "old"), bundle("b", "1", "a")}}, Plan{Bundles: []Bundle{bundle("a", "new"), bundle("b", "1", "a")}}
	why := func(plan Plan, live Live) string {
		t.Helper()
		reasons, err := Unsettled(owner, plan, live, rules())
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(reasons, "; ")
	}
	before := emitted(t, old)
	if got := why(plan, before); !strings.Contains(got, "a is not written") {
		t.Errorf("with everything ready in the old revision: %q", got)
	}
	after := carriedOut(t, before, decide(t, plan, before))
	if got := why(plan, after); got != "" {
		t.Errorf("with everything rolled out: %q", got)
	}
	for name, test := range map[string]struct {
		disturb func(*Plan, *Live)
		want    string
	}{
		"a cache":                            {func(_ *Plan, l *Live) { l.Uncached = false }, "from a cache"},
		"a wait":                             {func(p *Plan, _ *Live) { p.Waits = []Wait{{Name: "nodes", Reason: "old checksum"}} }, "the plan waits: nodes"},
		"a task":                             {func(p *Plan, _ *Live) { p.Tasks = []Task{{Name: "rewrite"}} }, "the task rewrite is due"},
		"a generation that was not observed": {func(_ *Plan, l *Live) { l.ManagedResources[named("a")].Generation++ }, "has not been observed"},
		"a rollout": {func(_ *Plan, l *Live) {
			condition(l.ManagedResources[named("a")], resourcesv1alpha1.ResourcesProgressing, resourcesv1alpha1.ConditionTrue, "DeploymentProgressing", "")
		}, "is being rolled out"},
		"a bundle that the plan does not mention": {func(p *Plan, _ *Live) { p.Bundles = p.Bundles[:1] }, "does not mention it"},
	} {
		t.Run(name, func(t *testing.T) {
			p, l := plan, carriedOut(t, before, decide(t, plan, before))
			test.disturb(&p, &l)
			if got := why(p, l); !strings.Contains(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestOneWayFactsAreInTheLedger(t *testing.T) {
	c := fake.NewClientBuilder().WithScheme(testScheme()).Build()
	key := named("ledger")
	read := func() *Ledger {
		t.Helper()
		ledger, err := ReadLedger(t.Context(), c, key)
		if err != nil {
			t.Fatal(err)
		}
		return ledger
	}
	runs, ready := map[string]int{}, "kube-apiserver has not been rolled out"
	runner := &Runner{Writer: c, Clock: testingclock.NewFakePassiveClock(start), Acts: map[string]Act{
		"rewrite": {
			Ready: func(context.Context, Owner, Task) (string, error) { return ready, nil },
			Run: func(context.Context, Owner, Task) (Outcome, error) {
				runs["rewrite"]++
				if runs["rewrite"] == 1 {
					return Outcome{}, errors.New("the connection broke")
				}
				return Outcome{Done: runs["rewrite"] > 2, Progress: "half of it"}, nil
			},
		},
		"snapshot": {Run: func(context.Context, Owner, Task) (Outcome, error) {
			runs["snapshot"]++
			return Outcome{Done: true}, nil
		}},
	}}
	tasks := []Task{{Name: "rewrite", Value: "key-2"}, {Name: "snapshot", Value: "key-2"}}
	run := func() (Outcome, error) { return runner.Run(t.Context(), owner, read(), tasks) }
	if outcome, err := run(); err != nil || outcome.Progress != ready || len(runs) > 0 {
		t.Errorf("before the precondition holds: %+v, %v, runs %v", outcome, err, runs)
	}
	ready = ""
	if _, err := run(); err == nil {
		t.Error("the error of a task is lost")
	}
	for range 2 {
		if _, err := run(); err != nil {
			t.Fatal(err)
		}
	}
	if ledger := read(); !ledger.Has("rewrite", "key-2") || ledger.Has("snapshot", "key-2") || runs["snapshot"] > 0 {
		t.Errorf("the ledger has to be written before the next task: %v, runs %v", ledger.entries, runs)
	}
	for range 3 {
		if _, err := run(); err != nil {
			t.Fatal(err)
		}
	}
	if runs["rewrite"] != 3 || runs["snapshot"] != 1 || len(Due(read(), tasks...)) > 0 {
		t.Errorf("runs %v", runs)
	}
	if due := Due(read(), Task{Name: "rewrite", Value: "key-3"}); len(due) != 1 {
		t.Error("a task for another value is not due")
	}
	var secret corev1.Secret
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, &secret); err != nil || secret.Labels[labelPersist] != "true" {
		t.Errorf("the ledger is not saved with the state: %v, %v", err, secret.Labels)
	}
	stale := read()
	if err := read().Write(t.Context(), c, owner, "x", Entry{Value: "1"}); err != nil {
		t.Fatal(err)
	}
	if err := stale.Write(t.Context(), c, owner, "y", Entry{Value: "1"}); err == nil {
		t.Error("a stale ledger is written, which loses an entry")
	}
}

func TestTwoFlowsDoNotTouchEachOther(t *testing.T) {
	live := emitted(t, Plan{Bundles: []Bundle{bundle("crds", "1")}})
	mr := live.ManagedResources[named("crds")]
	mr.Labels[LabelFlow] = "garden"
	for name, plan := range map[string]Plan{
		"wanted":  {Bundles: []Bundle{bundle("crds", "2")}},
		"deleted": {Tombstones: tombstones("crds")},
	} {
		if decision := decide(t, plan, live); len(decision.Steps) > 0 || !strings.Contains(decision.Problems[named("crds")], "belongs to garden") {
			t.Errorf("%s: steps %q, problems %v", name, steps(decision), decision.Problems)
		}
	}
	mr.Labels[LabelFlow] = owner.Flow
	mr.Labels[LabelOwner] = "another seed"
	if decision := decide(t, Plan{Tombstones: tombstones("crds")}, live); len(decision.Steps) > 0 {
		t.Errorf("another owner's: steps %q", steps(decision))
	}
}

func TestDeletionHasEdgesOfItsOwn(t *testing.T) {
	// The extension depends on kube-apiserver, and must be deleted after it.
	server, ext := bundle("kube-apiserver", "1"), bundle("extension", "1", "kube-apiserver")
	server.DeleteAfter, ext.DeleteAfter = []Key{}, []Key{named("kube-apiserver")}
	live := emitted(t, Plan{Bundles: []Bundle{server, ext}})
	plan := Plan{Tombstones: tombstones("kube-apiserver", "extension"), Deleting: true}
	var order []string
	for range 3 {
		decision := decide(t, plan, live)
		order = append(order, steps(decision))
		live = carriedOut(t, live, decision)
	}
	if got := strings.Join(order, "; "); got != "Delete kube-apiserver; Delete extension; " {
		t.Errorf("order %q", got)
	}
	server.DeleteAfter = []Key{named("extension")}
	if err := (Plan{Bundles: []Bundle{server, ext}}).Validate(); err == nil || !strings.Contains(err.Error(), "deleteAfter") {
		t.Errorf("a cycle of deletions: error %v", err)
	}
}

func TestEveryAcceptedPlanCanBeDeleted(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 8))
	for range 500 {
		var plan Plan
		for i := range 6 {
			b := bundle(fmt.Sprint("b", i), "1")
			for j := range i {
				if random.IntN(3) == 0 {
					b.Spec.DependsOn = append(b.Spec.DependsOn, On(named(fmt.Sprint("b", j))))
				}
			}
			if random.IntN(3) == 0 {
				b.DeleteAfter = []Key{named(fmt.Sprint("b", random.IntN(6)))}
			}
			plan.Bundles = append(plan.Bundles, b)
		}
		if plan.Validate() != nil {
			continue
		}
		live := emitted(t, plan)
		gone := Plan{Tombstones: tombstones("b0", "b1", "b2", "b3", "b4", "b5"), Deleting: true}
		for range 6 {
			live = carriedOut(t, live, decide(t, gone, live))
		}
		if len(live.ManagedResources) > 0 {
			t.Fatalf("%v of %+v remain", sortedKeys(live.ManagedResources), plan.Bundles)
		}
	}
}

func TestDataOfTheOldSpecIsNotUsed(t *testing.T) {
	wanted := extension("Infrastructure", "one")
	wanted.Object["spec"] = map[string]any{"zones": []any{"a", "b"}}
	set := func(value any, fields ...string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) {
			if err := unstructured.SetNestedField(u.Object, value, fields...); err != nil {
				t.Fatal(err)
			}
		}
	}
	live := func(change func(*unstructured.Unstructured)) *unstructured.Unstructured {
		u := wanted.DeepCopy()
		u.SetUID("1")
		u.SetGeneration(2)
		u.SetAnnotations(map[string]string{annotationTimestamp: "2027-01-02T03:04:05.6Z"})
		set("set by another client", "spec", "region")(u)
		u.Object["status"] = map[string]any{"observedGeneration": int64(2), "lastOperation": map[string]any{"state": "Succeeded", "lastUpdateTime": "2027-01-02T03:04:05Z"}}
		change(u)
		return u
	}
	for name, test := range map[string]struct {
		live *unstructured.Unstructured
		want string
	}{
		"fresh":                {live(func(*unstructured.Unstructured) {}), ""},
		"missing":              {nil, "does not exist"},
		"the old zones":        {live(set([]any{"a"}, "spec", "zones")), "does not have the current spec"},
		"not observed":         {live(set(int64(1), "status", "observedGeneration")), "generation 2"},
		"an error":             {live(set(map[string]any{"description": "x"}, "status", "lastError")), "has an error"},
		"processing":           {live(set("Processing", "status", "lastOperation", "state")), "not Succeeded"},
		"no operation yet":     {live(set("2027-01-02T03:04:04Z", "status", "lastOperation", "lastUpdateTime")), "older"},
		"an operation pending": {live(set("reconcile", "metadata", "annotations", annotationOperation)), "has not started"},
	} {
		if got := NotFresh(wanted, test.live); test.want == "" && got != "" || !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestTheFlowReachesAFixedPoint(t *testing.T) {
	// A bundle contains a copy of the owner, with its progress.
	shoot := extension("Shoot", "one")
	shoot.Object["status"] = map[string]any{"conditions": []any{}}
	if _, found := Canonical(shoot).Object["status"]; found {
		t.Error("a projection without fields of the status has a status")
	}
	var report Report
	live := nothingLive()
	now := start
	for pass := range 10 {
		now = now.Add(time.Minute)
		shoot.SetResourceVersion(fmt.Sprint(pass))
		shoot.Object["status"] = map[string]any{
			"technicalID": "shoot--dev--one", "lastOperation": map[string]any{"progress": int64(report.LastOperation.Progress)},
		}
		copied := Canonical(shoot, "technicalID", "uid")
		if id, _, _ := unstructured.NestedString(copied.Object, "status", "technicalID"); id != "shoot--dev--one" {
			t.Fatalf("the projection lost a required field: %v", copied.Object)
		}
		cluster := extension("Cluster", "one")
		cluster.Object["spec"] = map[string]any{"shoot": copied.Object}
		plan := Plan{Bundles: []Bundle{{Key: named("cluster"), Objects: []client.Object{cluster}}, bundle("app", "1", "cluster")}}
		decision := decide(t, plan, live)
		live = carriedOut(t, live, decision)
		before := report
		report = Progress(Operation{Name: "x", Before: report}, owner, Result{Plan: plan, Decision: decide(t, plan, live), Live: live}, now)
		if pass > 1 && (len(decision.Steps) > 0 || report.LastOperation != before.LastOperation) {
			t.Fatalf("pass %d: steps %q, %+v", pass, steps(decision), report.LastOperation)
		}
	}
	if report.LastOperation.Progress != 100 {
		t.Errorf("%+v", report)
	}
}

// TestDeleteAfterIsEmitted checks that the ManagedResource contains the order of deletion, so that a manual deletion follows
// it. An empty list is not the same as no list.
func TestDeleteAfterIsEmitted(t *testing.T) {
	for name, test := range map[string]struct {
		given []Key
		want  string
	}{
		"none": {nil, ""}, "an empty list": {[]Key{}, `"deleteAfter":[]`}, "one": {[]Key{{Namespace: "a", Name: "b"}}, `"deleteAfter":[{"name":"b","namespace":"a"}]`},
	} {
		text, err := json.Marshal(resourcesv1alpha1.ManagedResourceSpec{DeleteAfter: deleteAfter(Bundle{DeleteAfter: test.given})})
		if err != nil {
			t.Fatal(err)
		}
		if found := strings.Contains(string(text), "deleteAfter"); found != (test.want != "") || !strings.Contains(string(text), test.want) {
			t.Errorf("%s: %s", name, text)
		}
	}
}
