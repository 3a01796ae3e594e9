package integration

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// TestLiveContestSlowsDown: a client changes an object after each correction. The test checks the delays: none for
// the first five corrections, then the delay doubles each time, up to five minutes. After the client has been quiet
// for ten minutes, the state is as before.
func TestLiveContestSlowsDown(t *testing.T) {
	f := newFixture(t)
	f.manage("set", f.configMap("one", "1"))
	f.reconcileOK("set")
	for i := range 5 {
		f.contest("value")
		if mr := f.reconcileOK("set"); applied(mr).Message != "All resources are applied." {
			t.Fatalf("after correction %d the message is %q", i+1, applied(mr).Message)
		}
		f.wantConfigMap("one", "1")
		wantContains(t, f.event(), "Normal Corrected", f.namespace+"/one")
	}
	f.contest("value")
	mr, _, err := f.reconcile("set")
	must(t, err)
	f.wantConfigMap("one", "1")
	wantContains(t, f.event(), "Warning Contested", "v1/ConfigMap/"+f.namespace+"/one", `"rival"`)
	f.wantContested(mr, `"rival"`)
	version := mr.ResourceVersion

	const margin = 50 * time.Millisecond
	for _, seconds := range []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300} {
		delay := time.Duration(seconds) * time.Second
		f.contest("value")
		if _, result, err := f.reconcile("set"); err != nil || result.RequeueAfter != delay+margin {
			t.Fatalf("the delay is %s (%v), want %s", result.RequeueAfter, err, delay+margin)
		}
		f.clock.Step(delay - time.Nanosecond)
		if _, result, err := f.reconcile("set"); err != nil || result.RequeueAfter != margin+time.Nanosecond {
			t.Fatalf("a moment before it is due, the requeue interval is %s (%v)", result.RequeueAfter, err)
		}
		f.wantConfigMap("one", "value")
		f.clock.Step(time.Nanosecond)
		if mr, _, err = f.reconcile("set"); err != nil {
			t.Fatal(err)
		}
		f.wantConfigMap("one", "1")
		f.wantContested(mr, `"rival"`)
	}
	if mr.ResourceVersion != version {
		t.Error("the status is written repeatedly while the contest goes on")
	}
	if len(f.recorder.Events) > 0 {
		t.Errorf("unexpected further Event: %s", f.event())
	}

	f.clock.Step(10 * time.Minute)
	mr, result, err := f.reconcile("set")
	must(t, err)
	f.wantContested(mr, `"rival"`)
	if result.RequeueAfter != margin+time.Nanosecond {
		t.Errorf("the end of the contest is reported after %s", result.RequeueAfter)
	}
	f.clock.Step(time.Nanosecond)
	if mr = f.reconcileOK("set"); applied(mr).Message != "All resources are applied." || mr.Status.AppliedInputs == "" {
		t.Errorf("after the contest: %q, inputs %q", applied(mr).Message, mr.Status.AppliedInputs)
	}
	f.contest("value")
	f.reconcileOK("set")
	f.wantConfigMap("one", "1")
}

// contest changes an object as another field manager.
func (f *fixture) contest(value string) {
	f.Helper()
	f.patch(f.configMap("one", ""), "rival", `{"data":{"key":"`+value+`"}}`)
}

// wantContested checks that the condition reports the contest and no other problem.
func (f *fixture) wantContested(mr *resourcesv1alpha1.ManagedResource, managers ...string) {
	f.Helper()
	condition := applied(mr)
	if condition.Status != resourcesv1alpha1.ConditionTrue || condition.Reason != resourcesv1alpha1.ReasonApplySucceeded {
		f.Errorf("ResourcesApplied is %s %s", condition.Status, condition.Reason)
	}
	wantContains(f, condition.Message, append(managers, "v1/ConfigMap/"+f.namespace+"/one")...)
}

// TestLiveContestOfControllers runs the resource-manager against a controller that writes its own value as soon as it
// sees another one.
func TestLiveContestOfControllers(t *testing.T) {
	f := newFixture(t)
	p := f.start(onlyEvents)
	f.manage("set", f.configMap("one", "1"))
	f.eventuallySucceeded("set")
	stop, changes := f.rival("one")
	f.eventually("the contest is reported", func() bool {
		message := applied(f.read("set")).Message
		return strings.Contains(message, `"rival"`) && strings.Contains(message, f.namespace+"/one")
	})
	f.wantContested(f.read("set"), `"rival"`)
	f.eventually("an Event is recorded", func() bool {
		list := &corev1.EventList{}
		must(t, f.client.List(f.ctx, list, client.InNamespace(f.namespace)))
		for _, event := range list.Items {
			if event.Reason == "Contested" && event.InvolvedObject.Name == "set" && strings.Contains(event.Message, `"rival"`) {
				return event.Type == corev1.EventTypeWarning
			}
		}
		return false
	})
	f.eventually("the contest is counted", func() bool { return p.metric("resource_manager_contested_objects") == 1 })
	f.eventually("the contest goes on", func() bool { return changes.Load() > 7 })

	stop()
	counted := func() float64 {
		return p.metric(`resource_manager_drift_corrected_total{group="",kind="ConfigMap",manager="rival"}`)
	}
	// The rival sees a correction before it is counted, which happens at the end of the reconcile.
	f.eventually("the corrections are counted", func() bool { return counted() >= 7 })
	f.eventually("the value of the manifest stays", func() bool { return f.liveConfigMap("one").Data["key"] == "1" })
	if corrections := counted(); float64(changes.Load())+1 < corrections {
		t.Errorf("%v corrections after %d changes", corrections, changes.Load())
	}
	f.wantContested(f.read("set"), `"rival"`)
}

// rival changes a ConfigMap each time it sees a value other than its own, until it is stopped. It counts its changes.
func (f *fixture) rival(name string) (stop func(), changes *atomic.Int64) {
	f.Helper()
	ctx, cancel := context.WithCancel(f.ctx)
	object := f.object(f.configMap(name, ""))
	watcher := f.watch(object)
	change := func() error {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"data":{"key":"rival"}}`))
		return f.client.Patch(ctx, object.DeepCopy(), patch, client.FieldOwner("rival"))
	}
	must(f, change())
	changes, done := &atomic.Int64{}, make(chan struct{})
	changes.Add(1)
	go func() {
		defer close(done)
		for {
			select {
			case <-ctx.Done():
				return
			case event := <-watcher.ResultChan():
				seen, is := event.Object.(*unstructured.Unstructured)
				if is && at(seen, "data", "key") != "rival" && change() == nil {
					changes.Add(1)
				}
			}
		}
	}()
	return func() {
		cancel()
		watcher.Stop()
		<-done
	}, changes
}
