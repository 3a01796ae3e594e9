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
	// shown is what a cache shows.
	shown client.Client
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

// restart has the flow forget all that is not in the API server.
func (r *rollout) restart(pacing Pacing) {
	r.Helper()
	r.pacer = &Pacer{Pacing: pacing, Clock: r.clock}
	if err := r.pacer.Source().Start(r.Context(), r.queue); err != nil {
		r.Fatal(err)
	}
}

func (r *rollout) owner(number int) Owner {
	return Owner{Flow: "shoot", UID: types.UID(fmt.Sprint("uid-", number)), Name: fmt.Sprint("s", number)}
}

// pass makes a pass for an owner. If it is admitted, the first bundles are written, and not rolled out yet.
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

// finish has the resource-manager roll out an owner's bundles.
func (r *rollout) finish(number int) {
	for _, mr := range r.lives[r.owner(number).Name].ManagedResources {
		mr.Status.ObservedGeneration = mr.Generation
	}
}

// show brings the cache up to date.
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

// woken returns the owners that were brought back, without those that time brings back.
func (r *rollout) woken() []string {
	var names []string
	for r.queue.Len() > 0 {
		request, _ := r.queue.Get()
		r.queue.Done(request)
		names = append(names, request.Name)
	}
	return names
}

// TestBudgetWhileTheCacheIsBehind: a pass that finds its own changes written gives none of the budget away, though the cache, from which the
// other owners are counted, does not show these changes yet.
func TestBudgetWhileTheCacheIsBehind(t *testing.T) {
	r := newRollout(t, 4, Pacing{Budget: 2, MaxFailed: 1, Retry: time.Hour})
	if !r.pass(0, 2) || r.pass(1, 2) {
		t.Fatal("want the first owner admitted, and not the second")
	}
	r.pass(0, 2) // which finds nothing to write
	r.clock.SetTime(start.Add(2 * time.Second))
	if r.pass(1, 2) {
		t.Errorf("%d ManagedResources are rolling out, with a budget of 2", r.rolling())
	}
}

// TestBudgetIsGivenOn: an owner that waits is brought back as soon as there is room, and no other one for the same room.
func TestBudgetIsGivenOn(t *testing.T) {
	r := newRollout(t, 5, Pacing{Budget: 4, MaxFailed: 1, Retry: time.Hour})
	for i := range 5 {
		if admitted := r.pass(i, 2); admitted != (i < 2) {
			t.Fatalf("owner %d: admitted %t", i, admitted)
		}
	}
	r.finish(0)
	r.pass(0, 2)
	r.pass(1, 2) // which is still rolling out
	if woken := r.woken(); !slices.Equal(woken, []string{"s2"}) {
		t.Errorf("woke %v, want s2", woken)
	}
	if r.pass(3, 2) || !r.pass(2, 2) || r.rolling() != 4 {
		t.Errorf("the slot went to another one than the one that was woken: %d are rolling out", r.rolling())
	}
	r.finish(1)
	r.finish(2)
	r.pass(1, 2)
	r.pass(2, 2)
	if woken := r.woken(); !slices.Equal(woken, []string{"s4", "s3"}) {
		t.Errorf("woke %v, want those that wait, in their order", woken)
	}
}

// TestBudgetAfterAKill: the flow is killed when it has written one of two bundles of an owner. After the start its rollout goes on, and no
// other owner gets the room that it needs.
func TestBudgetAfterAKill(t *testing.T) {
	pacing := Pacing{Budget: 3, MaxFailed: 1, Retry: time.Hour}
	r := newRollout(t, 3, pacing)
	r.pass(0, 1)
	r.show()
	r.restart(pacing)
	if r.pass(1, 2) {
		t.Error("another owner was admitted before the interrupted rollout was looked at")
	}
	if !r.pass(0, 2) || r.rolling() != 2 {
		t.Errorf("the interrupted rollout does not go on: %d are rolling out", r.rolling())
	}
	r.show()
	if r.pass(1, 2) {
		t.Errorf("%d are rolling out, with a budget of 3", r.rolling())
	}
}

// TestOwnersThatAreGoneDoNotBlock: an owner that is never looked at, as it is gone, may seem to be in the middle of a rollout. It blocks the
// others until the next count.
func TestOwnersThatAreGoneDoNotBlock(t *testing.T) {
	pacing := Pacing{Budget: 2, MaxFailed: 1, Retry: time.Hour}
	r := newRollout(t, 2, pacing)
	r.pass(0, 1)
	r.finish(0)
	r.show()
	r.restart(pacing)
	if r.pass(1, 2) {
		t.Error("another owner was admitted before the interrupted rollout was looked at")
	}
	r.clock.SetTime(start.Add(countEvery))
	if !r.pass(1, 2) {
		t.Error("an owner that is never looked at blocks the others")
	}
}
