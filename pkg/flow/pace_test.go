package flow

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// rollout is a fleet of owners with two bundles each, whose program has changed from v1 to v2.
type rollout struct {
	*testing.T
	clock *testingclock.FakePassiveClock
	pacer *Pacer
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	lives map[string]Live
	// shown is the cache.
	shown client.Client
	// ofNodes reports which bundles change nodes.
	ofNodes func(Key) bool
}

func newRollout(t *testing.T, owners int, pacing Pacing) *rollout {
	t.Helper()
	r := &rollout{T: t, clock: testingclock.NewFakePassiveClock(start), lives: map[string]Live{}}
	var all []client.Object
	for i := range owners {
		live := emittedFor(t, r.owner(i))
		r.lives[r.owner(i).Name] = live
		for _, mr := range live.ManagedResources {
			all = append(all, mr)
		}
	}
	r.shown = fake.NewClientBuilder().WithScheme(testScheme()).WithObjects(all...).Build()
	r.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(r.queue.ShutDown)
	r.restart(pacing)
	return r
}

// restart simulates a restart of the flow: all state outside the API server is lost.
func (r *rollout) restart(pacing Pacing) {
	r.Helper()
	r.pacer = &Pacer{Pacing: pacing, Clock: r.clock, OfNodes: r.ofNodes}
	if err := r.pacer.Source().Start(r.Context(), r.queue); err != nil {
		r.Fatal(err)
	}
}

func (r *rollout) owner(number int) Owner {
	return Owner{Flow: "shoot", UID: types.UID(fmt.Sprint("uid-", number)), Name: fmt.Sprint("s", number)}
}

// pass makes a pass for an owner. If the owner is admitted, the first bundles are written, but not rolled out yet.
func (r *rollout) pass(number, bundles int) (admitted bool) {
	r.Helper()
	o, v2 := r.owner(number), rules()
	v2.Version = "v2"
	plan, live := planFor(o, "2"), r.lives[r.owner(number).Name]
	decision, err := Decide(o, plan, live, v2)
	if err != nil {
		r.Fatal(err)
	}
	wait, _, err := r.pacer.hold(r.Context(), r.shown, o, plan, live, decision, "v2")
	if err != nil {
		r.Fatal(err)
	}
	if wait != nil {
		return false
	}
	decision.Steps = decision.Steps[:min(bundles, len(decision.Steps))]
	next := carriedOut(r.T, live, decision)
	for _, step := range decision.Steps {
		mr := next.ManagedResources[step.Key]
		mr.Labels[LabelOwner], mr.Status.ObservedGeneration = string(o.UID), 0
	}
	r.lives[o.Name] = next
	return true
}

// finish simulates that the resource-manager has rolled out the bundles of an owner.
func (r *rollout) finish(number int) {
	for _, mr := range r.lives[r.owner(number).Name].ManagedResources {
		mr.Status.ObservedGeneration = mr.Generation
	}
}

// show updates the cache.
func (r *rollout) show() {
	r.Helper()
	var all []client.Object
	for _, live := range r.lives {
		for _, mr := range live.ManagedResources {
			shown := mr.DeepCopy()
			shown.ResourceVersion = ""
			all = append(all, shown)
		}
	}
	r.shown = fake.NewClientBuilder().WithScheme(testScheme()).WithObjects(all...).Build()
}

func (r *rollout) rolling() int {
	var all []resourcesv1alpha1.ManagedResource
	for _, live := range r.lives {
		for _, mr := range live.ManagedResources {
			all = append(all, *mr)
		}
	}
	return FleetOf(all, "v2").Rolling
}

// woken returns the owners in the queue. It ignores those that are only due at a later time.
func (r *rollout) woken() []string {
	var names []string
	for r.queue.Len() > 0 {
		request, _ := r.queue.Get()
		r.queue.Done(request)
		names = append(names, request.Name)
	}
	return names
}

// TestBudgetWhileTheCacheIsBehind checks that a pass that finds its own changes written does not release budget, although the
// cache, which the other owners are counted from, does not show these changes yet.
func TestBudgetWhileTheCacheIsBehind(t *testing.T) {
	r := newRollout(t, 4, Pacing{Budget: 2, MaxFailed: 1, Retry: time.Hour})
	if !r.pass(0, 2) || r.pass(1, 2) {
		t.Fatal("want only the first owner admitted")
	}
	r.pass(0, 2) // finds nothing to write
	r.clock.SetTime(start.Add(2 * time.Second))
	if r.pass(1, 2) {
		t.Errorf("%d ManagedResources are rolling out, with a budget of 2", r.rolling())
	}
}

// TestBudgetIsGivenOn checks that a waiting owner is queued as soon as a slot is free, and that no other owner is queued for
// the same slot.
func TestBudgetIsGivenOn(t *testing.T) {
	r := newRollout(t, 5, Pacing{Budget: 4, MaxFailed: 1, Retry: time.Hour})
	for i := range 5 {
		if admitted := r.pass(i, 2); admitted != (i < 2) {
			t.Fatalf("owner %d: admitted %t", i, admitted)
		}
	}
	r.finish(0)
	r.pass(0, 2)
	r.pass(1, 2) // still rolling out
	if woken := r.woken(); !slices.Equal(woken, []string{"s2"}) {
		t.Errorf("queued %v, want s2", woken)
	}
	if r.pass(4, 2) || !r.pass(2, 2) || r.rolling() != 4 {
		t.Errorf("the slot was not taken by the queued owner: %d are rolling out", r.rolling())
	}
	r.finish(1)
	r.finish(2)
	r.pass(1, 2)
	r.pass(2, 2)
	if woken := r.woken(); !slices.Equal(woken, []string{"s3", "s4"}) {
		t.Errorf("queued %v, want the waiting owners in their order", woken)
	}
}

// TestBudgetAfterAKill kills the flow after it has written one of two bundles of an owner. After the restart the rollout of
// this owner continues, and no other owner gets the budget that it needs.
func TestBudgetAfterAKill(t *testing.T) {
	pacing := Pacing{Budget: 3, MaxFailed: 1, Retry: time.Hour}
	r := newRollout(t, 3, pacing)
	r.pass(0, 1)
	r.show()
	r.restart(pacing)
	if r.pass(1, 2) {
		t.Error("another owner was admitted before the owner of the interrupted rollout was reconciled")
	}
	if !r.pass(0, 2) || r.rolling() != 2 {
		t.Errorf("the interrupted rollout does not continue: %d are rolling out", r.rolling())
	}
	r.show()
	if r.pass(1, 2) {
		t.Errorf("%d are rolling out, with a budget of 3", r.rolling())
	}
}

// TestOwnersThatAreGoneDoNotBlock checks that an owner that no longer exists, and is therefore never reconciled, blocks the
// others only until the next count, although it seems to be in the middle of a rollout.
func TestOwnersThatAreGoneDoNotBlock(t *testing.T) {
	pacing := Pacing{Budget: 2, MaxFailed: 1, Retry: time.Hour}
	r := newRollout(t, 2, pacing)
	r.pass(0, 1)
	r.finish(0)
	r.show()
	r.restart(pacing)
	if r.pass(1, 2) {
		t.Error("another owner was admitted before the next count")
	}
	r.clock.SetTime(start.Add(countEvery))
	if !r.pass(1, 2) {
		t.Error("an owner that no longer exists blocks the others")
	}
}
