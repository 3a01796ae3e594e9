package health

import (
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

const (
	isTrue, isFalse, unknown = resourcesv1alpha1.ConditionTrue, resourcesv1alpha1.ConditionFalse, resourcesv1alpha1.ConditionUnknown
	healthyType              = resourcesv1alpha1.ResourcesHealthy
	progressingType          = resourcesv1alpha1.ResourcesProgressing
)

// TestSettle checks how long a result must last before the condition reports it.
func TestSettle(t *testing.T) {
	now := time.Unix(10_000, 0)
	for name, test := range map[string]struct {
		conditionType resourcesv1alpha1.ConditionType
		before        resourcesv1alpha1.ConditionStatus
		reason        string
		found         resourcesv1alpha1.ConditionStatus
		rolling       bool
		want          time.Duration
	}{
		"worse at rest":                  {healthyType, isTrue, "ResourcesHealthy", isFalse, false, 0},
		"worse during a rollout":         {healthyType, isTrue, "ResourcesHealthy", isFalse, true, 30 * time.Second},
		"better at rest":                 {healthyType, isFalse, "PodUnhealthy", isTrue, false, 0},
		"better during a rollout":        {healthyType, isFalse, "PodUnhealthy", isTrue, true, 5 * time.Second},
		"new, well":                      {healthyType, unknown, "ChecksPending", isTrue, true, 0},
		"new, not well":                  {healthyType, unknown, "ChecksPending", isFalse, true, 2 * time.Second},
		"new, not well, nothing rolls":   {healthyType, unknown, "ChecksPending", isFalse, false, 0},
		"nothing said before":            {healthyType, unknown, "", isFalse, false, 0},
		"not known any more":             {healthyType, isTrue, "ResourcesHealthy", unknown, false, 5 * time.Second},
		"not known, was unhealthy":       {healthyType, isFalse, "PodUnhealthy", unknown, true, 5 * time.Second},
		"ignored before":                 {healthyType, isTrue, "ManagedResourceIgnored", isFalse, true, 0},
		"ignored before, now unknown":    {healthyType, isTrue, "ManagedResourceIgnored", unknown, true, 0},
		"was to be deleted":              {healthyType, isFalse, "DeletionPending", isTrue, true, 0},
		"a rollout begins":               {progressingType, isFalse, "ResourcesRolledOut", isTrue, true, 0},
		"a rollout ends":                 {progressingType, isTrue, "DeploymentProgressing", isFalse, true, 0},
		"a rollout is not known":         {progressingType, isTrue, "DeploymentProgressing", unknown, true, 5 * time.Second},
		"a rollout was ignored":          {progressingType, isFalse, "ManagedResourceIgnored", isTrue, true, 0},
		"known again, which is at once ": {healthyType, unknown, "ChecksPending", isTrue, false, 0},
	} {
		before := resourcesv1alpha1.Condition{Type: test.conditionType, Status: test.before, Reason: test.reason, Message: "before"}
		before.LastUpdateTime, before.LastTransitionTime = metav1.NewTime(now.Add(-time.Hour)), metav1.NewTime(now.Add(-time.Hour))
		found := resourcesv1alpha1.NewStatement(test.found, "Found", "found")
		said := resourcesv1alpha1.NewStatement(test.before, test.reason, "before")
		settling := Settling{wasTrue: true}
		if test.want > 0 {
			if got, again := settling.Settle(before, found, test.rolling, now); got != said || again != test.want {
				t.Errorf("%s, immediately: %+v, next check after %s", name, got, again)
			}
			if got, again := settling.Settle(before, found, test.rolling, now.Add(test.want-time.Second)); got != said || again != time.Second {
				t.Errorf("%s, a second before: %+v, next check after %s", name, got, again)
			}
		}
		if got, again := settling.Settle(before, found, test.rolling, now.Add(test.want)); got != found || again != 0 {
			t.Errorf("%s, after %s: %+v, next check after %s", name, test.want, got, again)
		}
		if settling != (Settling{wasTrue: true}) {
			t.Errorf("%s: %+v is remembered", name, settling)
		}
	}
}

// TestSettle_Restarts checks that the result must last without interruption.
func TestSettle_Restarts(t *testing.T) {
	now := time.Unix(10_000, 0)
	before := resourcesv1alpha1.Condition{Type: healthyType, Status: isTrue, Reason: "ResourcesHealthy", Message: "well"}
	well, sick := resourcesv1alpha1.NewStatement(isTrue, "ResourcesHealthy", "well"), resourcesv1alpha1.NewStatement(isFalse, "PodUnhealthy", "sick")
	var settling Settling
	for i := range 10 {
		found := []resourcesv1alpha1.Statement{sick, well}[i%2]
		if got, _ := settling.Settle(before, found, true, now); got != well {
			t.Errorf("step %d: %+v", i, got)
		}
		now = now.Add(29 * time.Second)
	}
	settling.Settle(before, sick, true, now)
	other := resourcesv1alpha1.NewStatement(isFalse, "JobUnhealthy", "sick in another way")
	if got, again := settling.Settle(before, other, true, now.Add(20*time.Second)); got != well || again != 10*time.Second {
		t.Errorf("another problem restarted the delay: %+v, next check after %s", got, again)
	}
	if got, _ := settling.Settle(before, sick, false, now.Add(21*time.Second)); got != sick {
		t.Errorf("after the rollout: %+v", got)
	}
}

// TestSettleFirst checks that objects that become healthy for the first time are reported immediately, even during a rollout.
// After that, the condition does not flap.
func TestSettleFirst(t *testing.T) {
	now := time.Unix(10_000, 0)
	well, sick := resourcesv1alpha1.NewStatement(isTrue, "ResourcesHealthy", "well"), resourcesv1alpha1.NewStatement(isFalse, "DeploymentUnhealthy", "sick")
	condition := func(statement resourcesv1alpha1.Statement) resourcesv1alpha1.Condition {
		return resourcesv1alpha1.Condition{Type: healthyType, Status: statement.Status, Reason: statement.Reason, Message: statement.Message}
	}
	var settling Settling
	if got, again := settling.Settle(condition(sick), well, true, now); got != well || again != 0 {
		t.Errorf("healthy for the first time: %+v, next check after %s", got, again)
	}
	if got, again := settling.Settle(condition(well), sick, true, now); got != well || again != 30*time.Second {
		t.Errorf("the next Pod starts: %+v, next check after %s", got, again)
	}
	if got, again := settling.Settle(condition(sick), well, true, now.Add(40*time.Second)); got != sick || again != 5*time.Second {
		t.Errorf("healthy again: %+v, next check after %s", got, again)
	}
}

// TestSettlePending checks that a change that an object's controller has not observed is not reported during the rollout. If
// the controller never observes it, it is reported after the same delay as other problems, counted from its start.
func TestSettlePending(t *testing.T) {
	now := time.Unix(10_000, 0)
	for _, status := range []resourcesv1alpha1.ConditionStatus{isTrue, isFalse} {
		before := resourcesv1alpha1.Condition{Type: healthyType, Status: status, Reason: "Before", Message: "before"}
		said := resourcesv1alpha1.NewStatement(status, "Before", "before")
		var settling Settling
		if got, again := settling.Settle(before, HealthPending(), true, now); got != said || again != 30*time.Second {
			t.Errorf("previously %s: %+v, next check after %s", status, got, again)
		}
		if got, again := settling.Settle(before, HealthPending(), false, now.Add(5*time.Second)); got != HealthPending() || again != 0 {
			t.Errorf("previously %s, without a rollout: %+v, next check after %s", status, got, again)
		}
	}
	before := resourcesv1alpha1.Condition{Type: healthyType, Status: isTrue, Reason: "ResourcesHealthy", Message: "well"}
	well, sick := resourcesv1alpha1.NewStatement(isTrue, "ResourcesHealthy", "well"), resourcesv1alpha1.NewStatement(isFalse, "DeploymentUnhealthy", "outdated")
	var settling Settling
	settling.Settle(before, HealthPending(), true, now)
	if got, again := settling.Settle(before, sick, true, now.Add(20*time.Second)); got != well || again != 10*time.Second {
		t.Errorf("outdated: %+v, next check after %s", got, again)
	}
	if got, again := settling.Settle(before, sick, true, now.Add(30*time.Second)); got != sick || again != 0 {
		t.Errorf("outdated for long: %+v, next check after %s", got, again)
	}
}

// TestSettleWording checks that the message of a condition whose status does not change is updated at most every five seconds.
func TestSettleWording(t *testing.T) {
	updated := time.Unix(10_000, 0)
	before := resourcesv1alpha1.Condition{Type: progressingType, Status: isTrue, Reason: "DeploymentProgressing", Message: "1 of 9"}
	before.LastUpdateTime = metav1.NewTime(updated)
	said, found := resourcesv1alpha1.NewStatement(isTrue, "DeploymentProgressing", "1 of 9"), resourcesv1alpha1.NewStatement(isTrue, "DeploymentProgressing", "2 of 9")
	var settling Settling
	if got, again := settling.Settle(before, found, true, updated.Add(2*time.Second)); got != said || again != 3*time.Second {
		t.Errorf("soon: %+v, next check after %s", got, again)
	}
	if got, again := settling.Settle(before, said, true, updated.Add(2*time.Second)); got != said || again != 0 {
		t.Errorf("the same message: %+v, next check after %s", got, again)
	}
	if got, again := settling.Settle(before, found, true, updated.Add(5*time.Second)); got != found || again != 0 {
		t.Errorf("later: %+v, next check after %s", got, again)
	}
	other := resourcesv1alpha1.NewStatement(isTrue, "StatefulSetProgressing", "0 of 1")
	if got, again := settling.Settle(before, other, true, updated); got != other || again != 0 {
		t.Errorf("another reason: %+v, next check after %s", got, again)
	}
}

func TestPendingIfUnobserved(t *testing.T) {
	subjects := []Subject{{Name: "a", Verdict: stale}, {Name: "b", Verdict: Verdict{Unhealthy: "sick"}}, {Name: "c", Missing: true}}
	got := PendingIfUnobserved(subjects)
	if !got[0].Pending || got[0].Verdict != (Verdict{}) || got[1] != subjects[1] || got[2] != subjects[2] {
		t.Errorf("got %+v", got)
	}
	if subjects[0].Pending || subjects[0].Verdict != stale {
		t.Error("the argument was changed")
	}
}

func TestRolling(t *testing.T) {
	now := time.Unix(10_000, 0)
	at := func(status resourcesv1alpha1.ConditionStatus, reason string, since time.Duration) resourcesv1alpha1.Condition {
		return resourcesv1alpha1.Condition{Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(now.Add(-since))}
	}
	done := at(isFalse, "ResourcesRolledOut", time.Hour)
	for name, test := range map[string]struct {
		before  resourcesv1alpha1.Condition
		subject Subject
		want    bool
	}{
		"rest":               {done, Subject{}, false},
		"sick":               {done, Subject{Verdict: Verdict{Unhealthy: "sick"}}, false},
		"missing":            {done, Subject{Missing: true}, false},
		"progressing":        {done, Subject{Verdict: Verdict{Progressing: "1 of 2"}}, true},
		"unobserved":         {done, Subject{Verdict: Verdict{Unobserved: true}}, true},
		"pending":            {done, Subject{Pending: true}, false},
		"said to be rolling": {at(isTrue, "DeploymentProgressing", time.Hour), Subject{}, true},
		"first checked now":  {at(isFalse, "ResourcesRolledOut", time.Second), Subject{}, false},
		"ignored just now":   {at(isFalse, "ManagedResourceIgnored", time.Second), Subject{}, false},
		"nothing said":       {at(unknown, "", time.Second), Subject{}, false},
	} {
		rollout := Rollout{}
		if got := rollout.Rolling(test.before, []Subject{{}, test.subject}, now); got != test.want {
			t.Errorf("%s: rolling is %t", name, got)
		}
		if got := rollout.Rolling(done, nil, now.Add(29*time.Second)); got != test.want {
			t.Errorf("%s: rolling is %t after 29 seconds", name, got)
		}
		if rollout.Rolling(done, nil, now.Add(30*time.Second)) {
			t.Errorf("%s: rolling forever", name)
		}
	}
}

// film passes objects to both conditions step by step and records every change of status.
type film struct {
	now                  time.Time
	healthy, progressing resourcesv1alpha1.Condition
	settling             [2]Settling
	rollout              Rollout
	history              []string
}

// show passes an object with the given verdict for a while.
func (f *film) show(verdict Verdict, kind string, lasting time.Duration) {
	subjects := []Subject{{Kind: kind, Namespace: "a", Name: "x", Verdict: verdict}}
	for end := f.now.Add(lasting); f.now.Before(end); f.now = f.now.Add(500 * time.Millisecond) {
		rolling := f.rollout.Rolling(f.progressing, subjects, f.now)
		progressing, _ := f.settling[0].Settle(f.progressing, Progressing(subjects), rolling, f.now)
		healthy, _ := f.settling[1].Settle(f.healthy, Healthy(PendingIfUnobserved(subjects)), rolling, f.now)
		f.take(&f.healthy, healthy)
		f.take(&f.progressing, progressing)
	}
}

func (f *film) take(condition *resourcesv1alpha1.Condition, statement resourcesv1alpha1.Statement) {
	if condition.Status != statement.Status {
		f.history = append(f.history, fmt.Sprintf("%s %s", condition.Type, statement.Status))
	}
	*condition = resourcesv1alpha1.SetCondition([]resourcesv1alpha1.Condition{*condition}, condition.Type, statement, f.now)[0]
}

func newFilm() *film {
	condition := func(conditionType resourcesv1alpha1.ConditionType) resourcesv1alpha1.Condition {
		return resourcesv1alpha1.Condition{Type: conditionType, Status: unknown}
	}
	return &film{now: time.Unix(10_000, 0), healthy: condition(healthyType), progressing: condition(progressingType)}
}

func (f *film) want(t *testing.T, what string, history ...string) {
	t.Helper()
	if !slices.Equal(f.history, history) {
		t.Errorf("%s: the conditions became %q, want %q", what, f.history, history)
	}
	f.history = nil
}

// TestStatefulSetDoesNotFlap runs rolling updates, in which the Pods become unready one after the other. If a Pod does not
// become ready, this is reported in the end.
func TestStatefulSetDoesNotFlap(t *testing.T) {
	const replicas = 5
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Generation: 1}}
	wanted := int32(replicas)
	set.Spec.Replicas = &wanted
	f := newFilm()
	show := func(ready, updated int32, lasting time.Duration) {
		set.Status.ReadyReplicas, set.Status.UpdatedReplicas = ready, updated
		f.show(checkStatefulSet(set), "StatefulSet", lasting)
	}
	show(0, replicas, time.Second)
	for ready := range int32(replicas) {
		set.Status.ObservedGeneration = 1
		show(ready, replicas, 10*time.Second)
	}
	show(replicas, replicas, time.Minute)
	f.want(t, "creation", "ResourcesProgressing True", "ResourcesProgressing False", "ResourcesHealthy False", "ResourcesHealthy True")

	for update := range 3 {
		set.Generation++
		show(replicas, replicas, time.Second)
		set.Status.ObservedGeneration++
		for updated := range int32(replicas) {
			show(replicas-1, updated, 8*time.Second)
			show(replicas-1, updated+1, 8*time.Second)
			show(replicas, updated+1, time.Second)
		}
		show(replicas, replicas, time.Minute)
		f.want(t, fmt.Sprint("update ", update), "ResourcesProgressing True", "ResourcesProgressing False")
	}

	set.Generation++
	set.Status.ObservedGeneration++
	show(replicas-1, 1, 5*time.Minute)
	f.want(t, "a Pod that does not start", "ResourcesProgressing True", "ResourcesHealthy False")
	show(replicas, 1, 6*time.Second)
	f.want(t, "it starts", "ResourcesHealthy True")
}

// TestDaemonSetDoesNotFlap runs updates that replace Pods node by node. When all Pods are updated, the last one is not
// available yet.
func TestDaemonSetDoesNotFlap(t *testing.T) {
	const nodes = 4
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Generation: 1}}
	set.Spec.UpdateStrategy.Type = appsv1.RollingUpdateDaemonSetStrategyType
	set.Status = appsv1.DaemonSetStatus{ObservedGeneration: 1, DesiredNumberScheduled: nodes, CurrentNumberScheduled: nodes}
	f := newFilm()
	show := func(updated, unavailable int32, lasting time.Duration) {
		set.Status.UpdatedNumberScheduled, set.Status.NumberUnavailable = updated, unavailable
		f.show(checkDaemonSet(set), "DaemonSet", lasting)
	}
	show(nodes, 0, time.Minute)
	f.want(t, "rest", "ResourcesHealthy True", "ResourcesProgressing False")
	for update := range 3 {
		set.Generation++
		show(nodes, 0, time.Second)
		set.Status.ObservedGeneration++
		for updated := range int32(nodes) {
			set.Status.CurrentNumberScheduled = nodes - 1
			show(updated, 1, time.Second)
			set.Status.CurrentNumberScheduled = nodes
			show(updated+1, 1, 20*time.Second)
			show(updated+1, 0, time.Second)
		}
		show(nodes, 0, time.Minute)
		f.want(t, fmt.Sprint("update ", update), "ResourcesProgressing True", "ResourcesProgressing False")
	}
	show(nodes, 1, time.Second)
	f.want(t, "a Pod breaks at rest", "ResourcesHealthy False")
	show(nodes, 0, time.Second)
	f.want(t, "the Pod is ready again", "ResourcesHealthy True")
}
