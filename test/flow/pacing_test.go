package flow

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	example "github.com/trellis-k8s/trellis/examples/flow"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/test/kit"
)

const (
	fleetOwners = 200
	// fleetBundles is the number of ManagedResources per site.
	fleetBundles = 2
	fleetBudget  = 10
	fleetFailed  = 3
)

// TestRolloutsOfAFleet changes the program of 200 sites. The clock of the flow stands still, so no site gets its turn
// because time has passed. A fake resource-manager decides the outcome for each ManagedResource. It uses one watch,
// which shows every state that the API server has stored, so the budget is checked at every moment.
func TestRolloutsOfAFleet(t *testing.T) {
	w := newWorld(t)
	f := newFleet(t, w)
	clock := testingclock.NewFakePassiveClock(time.Now())
	start := func(version string) (requests *kit.Requests, stop func()) {
		return w.startFlowWith(example.Options{
			Version: version, Workers: 5, Clock: clock, Pacing: flow.Pacing{Budget: fleetBudget, MaxFailed: fleetFailed, Retry: time.Hour},
		})
	}
	_, stop := start("v1")
	f.declare()
	f.eventuallyAll("v1")
	stop()

	// When half of the sites have changed, rollouts stop and the flow is restarted. It continues from there.
	f.begin(func(_ string, rolledOut int) verdict {
		if rolledOut >= fleetOwners*fleetBundles/2 {
			return left
		}
		return good
	})
	requests, stop := start("v2")
	kit.EventuallyTrue(t, "half of the fleet has changed", func() bool { return f.rolledOut("v2") >= fleetOwners*fleetBundles/2 })
	quiet(t, requests)
	stop()
	requests, stop = start("v2")
	quiet(t, requests)
	if sent := writes(requests); len(sent) > 0 {
		t.Errorf("the budget is used up, and a restart wrote %v", sent)
	}
	f.goOn()
	f.eventuallyAll("v2")
	f.withinBudget("v2")
	stop()

	// Three sites fail. Then no other site changes, although the budget has room, even after a restart.
	failing := map[string]bool{}
	f.begin(func(owner string, _ int) verdict {
		if len(failing) < fleetFailed {
			failing[owner] = true
		}
		if failing[owner] {
			return bad
		}
		return good
	})
	requests, stop = start("v3")
	kit.EventuallyTrue(t, "three sites fail", func() bool { return f.written("v3")-f.rolledOut("v3") == fleetFailed*fleetBundles })
	quiet(t, requests)
	stop()
	stopped := f.written("v3")
	if room := fleetBudget - fleetFailed*fleetBundles; stopped > 4*fleetBudget || room < fleetBundles {
		t.Errorf("%d ManagedResources have changed although %d sites fail", stopped, fleetFailed)
	}
	requests, stop = start("v3")
	quiet(t, requests)
	stop()
	if now := f.written("v3"); now != stopped {
		t.Errorf("%d ManagedResources had changed when the flow was restarted, but %d some time later", stopped, now)
	}
	f.withinBudget("v3")

	// A good version is rolled out to all sites, including those that failed.
	f.begin(func(string, int) verdict { return good })
	_, stop = start("v4")
	f.eventuallyAll("v4")
	f.withinBudget("v4")
	stop()
}

// verdict is the outcome for a ManagedResource that was written.
type verdict int

const (
	good verdict = iota
	bad
	left // unchanged, for now
)

// fleet is the fake resource-manager, and the state of the ManagedResources that its watch has seen.
type fleet struct {
	*world
	mu  sync.Mutex
	mrs map[string]*resourcesv1alpha1.ManagedResource
	// rolling counts those that are not rolled out. most is its maximum since begin.
	rolling, most int
	// judge returns the verdict on a ManagedResource, given its site and how many of its version are rolled out.
	judge func(owner string, rolledOut int) verdict
}

func newFleet(t *testing.T, w *world) *fleet {
	t.Helper()
	f := &fleet{world: w, mrs: map[string]*resourcesv1alpha1.ManagedResource{}, judge: func(string, int) verdict { return good }}
	c, err := client.NewWithWatch(w.cp.Config(), client.Options{Scheme: w.scheme})
	kit.Must(t, err)
	events, err := c.Watch(t.Context(), &resourcesv1alpha1.ManagedResourceList{}, client.InNamespace(w.namespace))
	kit.Must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var group errgroup.Group
	group.SetLimit(8)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range events.ResultChan() {
			if mr, ok := event.Object.(*resourcesv1alpha1.ManagedResource); ok && event.Type != watch.Bookmark {
				if patch := f.see(mr); patch != nil {
					group.Go(func() error { return f.send(ctx, mr, patch) })
				}
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		events.Stop()
		<-done
		_ = group.Wait() // failures have been reported
	})
	return f
}

// send patches the status of a ManagedResource.
func (f *fleet) send(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, patch []byte) error {
	err := f.client.Status().Patch(ctx, mr.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
	if err != nil && ctx.Err() == nil {
		f.Errorf("write the status of %s: %v", mr.Name, err)
	}
	return err
}

// see records a state of a ManagedResource, and returns the status that the resource-manager would write, or nil.
func (f *fleet) see(mr *resourcesv1alpha1.ManagedResource) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	if before := f.mrs[mr.Name]; before != nil && isRolling(before) {
		f.rolling--
	}
	if isRolling(mr) {
		f.rolling++
		f.most = max(f.most, f.rolling)
	}
	f.mrs[mr.Name] = mr
	return f.answer(mr)
}

func isRolling(mr *resourcesv1alpha1.ManagedResource) bool {
	return flow.FleetOf([]resourcesv1alpha1.ManagedResource{*mr}, "").Rolling > 0
}

// answer returns the status for a generation that has not been observed. The caller holds the lock.
func (f *fleet) answer(mr *resourcesv1alpha1.ManagedResource) []byte {
	if mr.Status.ObservedGeneration == mr.Generation {
		return nil
	}
	healthy := resourcesv1alpha1.ConditionTrue
	switch f.judge(mr.Annotations[flow.AnnotationOwner], f.count(mr.Annotations[flow.AnnotationVersion], true)) {
	case left:
		return nil
	case bad:
		healthy = resourcesv1alpha1.ConditionFalse
	}
	condition := func(kind resourcesv1alpha1.ConditionType, status resourcesv1alpha1.ConditionStatus) resourcesv1alpha1.Condition {
		return resourcesv1alpha1.Condition{
			Type: kind, Status: status, Reason: "StandIn", Message: "reported by the test", LastTransitionTime: metav1.Now(), LastUpdateTime: metav1.Now(),
		}
	}
	return must(json.Marshal(map[string]any{"status": map[string]any{
		"observedGeneration": mr.Generation,
		"conditions": []resourcesv1alpha1.Condition{
			condition(resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ConditionTrue),
			condition(resourcesv1alpha1.ResourcesHealthy, healthy),
			condition(resourcesv1alpha1.ResourcesProgressing, resourcesv1alpha1.ConditionFalse),
		},
	}}))
}

// count counts the ManagedResources that a version has written. With rolledOut, it counts only those that are rolled
// out. The caller holds the lock.
func (f *fleet) count(version string, rolledOut bool) int {
	count := 0
	for _, mr := range f.mrs {
		if mr.Annotations[flow.AnnotationVersion] == version && (!rolledOut || !isRolling(mr)) {
			count++
		}
	}
	return count
}

func (f *fleet) rolledOut(version string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count(version, true)
}

func (f *fleet) written(version string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count(version, false)
}

// begin makes the fake resource-manager use another judge, and restarts the count of the most ManagedResources that
// roll out at a time.
func (f *fleet) begin(judge func(owner string, rolledOut int) verdict) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.judge, f.most = judge, f.rolling
}

// goOn makes the fake resource-manager report success for everything, including ManagedResources that it has left
// unchanged.
func (f *fleet) goOn() {
	f.Helper()
	f.mu.Lock()
	f.judge = func(string, int) verdict { return good }
	patches := map[*resourcesv1alpha1.ManagedResource][]byte{}
	for _, mr := range f.mrs {
		if patch := f.answer(mr); patch != nil {
			patches[mr] = patch
		}
	}
	f.mu.Unlock()
	for mr, patch := range patches {
		kit.Must(f, f.send(f.Context(), mr, patch))
	}
}

// declare creates the sites. Their networks are not declared, so the sites have only their apps.
func (f *fleet) declare() {
	f.Helper()
	group, ctx := errgroup.WithContext(f.Context())
	group.SetLimit(16)
	for i := range fleetOwners {
		group.Go(func() error {
			return f.client.Create(ctx, &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: f.namespace, Name: fmt.Sprintf("s%03d", i), Labels: map[string]string{example.LabelSite: "true"},
				},
				Data: map[string]string{"message": "hello", "apps": fmt.Sprint(fleetBundles)},
			})
		})
	}
	kit.Must(f, group.Wait())
}

// eventuallyAll waits until a version of the program has written all ManagedResources and all are rolled out.
func (f *fleet) eventuallyAll(version string) {
	f.Helper()
	kit.EventuallyWithin(f, 5*kit.WaitTimeout, "all sites have changed to "+version, func() string {
		if done, all := f.rolledOut(version), fleetOwners*fleetBundles; done < all {
			return fmt.Sprintf("%d of %d ManagedResources are rolled out", done, all)
		}
		return ""
	})
}

// withinBudget checks that, since begin, never more ManagedResources were rolling out than the budget allows.
func (f *fleet) withinBudget(version string) {
	f.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Logf("%s: at most %d ManagedResources were rolling out at a time", version, f.most)
	if f.most > fleetBudget {
		f.Errorf("%s: %d ManagedResources were rolling out at a time, with a budget of %d", version, f.most, fleetBudget)
	}
}
