package integration

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// whileSlow reconciles once. While the first object is written, it advances the clock by four seconds and calls look.
func (f *fixture) whileSlow(name string, look func()) *resourcesv1alpha1.ManagedResource {
	f.Helper()
	looked := false
	f.requests.breakWith(func(request *http.Request) error {
		if request.Method == http.MethodPatch && !looked {
			looked = true
			f.clock.Step(4 * time.Second)
			look()
		}
		return nil
	})
	defer f.requests.breakWith(nil)
	mr, _, _ := f.reconcile(name)
	if !looked {
		f.Fatal("nothing was written")
	}
	return mr
}

func (f *fixture) condition(name string) resourcesv1alpha1.Condition {
	f.Helper()
	mr := &resourcesv1alpha1.ManagedResource{}
	must(f, f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: name}, mr))
	return applied(mr)
}

func TestProgressOfAChangeIsShownIfItTakesLong(t *testing.T) {
	f := newFixture(t)
	f.manage("set", f.configMap("one", "1"))
	before := applied(f.reconcileOK("set"))

	f.clock.Step(time.Minute)
	f.secret("set", "objects.yaml", f.configMap("one", "2"))
	quick := applied(f.reconcileOK("set"))
	if quick.LastTransitionTime != before.LastTransitionTime {
		t.Error("a quick change was shown as progress, which costs a request")
	}

	f.secret("set", "objects.yaml", f.configMap("one", "3"))
	slow := applied(f.whileSlow("set", func() {
		f.eventually("the status reports the progress", func() bool {
			condition := f.condition("set")
			return condition.Status == resourcesv1alpha1.ConditionProgressing &&
				condition.Reason == resourcesv1alpha1.ReasonApplyProgressing
		})
	}))
	if slow.Status != resourcesv1alpha1.ConditionTrue || !slow.LastTransitionTime.After(quick.LastTransitionTime.Time) {
		t.Errorf("at the end the condition is %+v", slow)
	}
	f.wantConfigMap("one", "3")
	f.wantQuiet("set")
}

func TestNoProgressWithoutAChange(t *testing.T) {
	f := newFixture(t)
	f.manage("set", f.configMap("one", "1"))
	before := applied(f.reconcileOK("set"))
	live := f.liveConfigMap("one")
	live.Data["key"] = "by hand"
	must(t, f.client.Update(f.ctx, live))
	f.whileSlow("set", func() {})
	if after := f.condition("set"); after.LastTransitionTime != before.LastTransitionTime {
		t.Errorf("the condition changed from %+v to %+v", before, after)
	}
	f.wantConfigMap("one", "1")
}

func TestFailureIsShownUntilThereIsNews(t *testing.T) {
	f := newFixture(t)
	wrong := strings.Replace(f.configMap("one", "2"), "\ndata:", "\nimmutable: later\ndata:", 1)
	f.manage("set", f.configMap("one", "1"))
	f.reconcileOK("set")
	f.secret("set", "objects.yaml", wrong)
	mr, _, _ := f.reconcile("set")
	failed := applied(mr)
	if failed.Reason != resourcesv1alpha1.ReasonApplyFailed {
		t.Fatalf("the condition is %+v", failed)
	}
	f.secret("set", "objects.yaml", f.configMap("one", "3"))
	f.whileSlow("set", func() {
		f.eventually("the status reports the progress", func() bool {
			return f.condition("set").Status == resourcesv1alpha1.ConditionProgressing
		})
		if now := f.condition("set"); now.Reason != failed.Reason || now.Message != failed.Message {
			t.Errorf("during the reconcile the condition is %+v, before it was %+v", now, failed)
		}
	})
	if after := f.condition("set"); after.Status != resourcesv1alpha1.ConditionTrue {
		t.Errorf("at the end the condition is %+v", after)
	}
}
