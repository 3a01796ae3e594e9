package controller

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/health"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// life is a ManagedResource with one Deployment whose conditions are computed repeatedly.
type life struct {
	*Reconciler
	clock  *clocktesting.FakeClock
	mr     *resourcesv1alpha1.ManagedResource
	memory *memory
}

func newLife(threshold time.Duration) *life {
	clock := clocktesting.NewFakeClock(noon)
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "shop"}}
	return &life{
		Reconciler: NewReconciler(Reconciler{Clock: clock, Options: Options{ProgressingThreshold: threshold}}),
		clock:      clock, mr: mr, memory: &memory{},
	}
}

// look passes a verdict to judge, stores the resulting conditions, and returns the time until the next check.
func (l *life) look(verdict health.Verdict, checksErr error) time.Duration {
	subjects := []health.Subject{{Group: "apps", Kind: "Deployment", Namespace: "a", Name: "web", Verdict: verdict}}
	healthy, progressing, again := l.judge(l.mr, l.memory, subjects, checksErr)
	again = soonest(again, l.untilStuck(progressing, l.mr))
	now := l.clock.Now()
	l.mr.Status.Conditions = resourcesv1alpha1.SetCondition(l.mr.Status.Conditions, resourcesv1alpha1.ResourcesHealthy, healthy, now)
	l.mr.Status.Conditions = resourcesv1alpha1.SetCondition(l.mr.Status.Conditions, resourcesv1alpha1.ResourcesProgressing, progressing, now)
	return again
}

// expect checks the statuses of both conditions and the reason of ResourcesHealthy.
func (l *life) expect(t *testing.T, when, want string) {
	t.Helper()
	healthy := conditionOf(l.mr, resourcesv1alpha1.ResourcesHealthy)
	got := string(healthy.Status) + " " + healthy.Reason + " " + string(conditionOf(l.mr, resourcesv1alpha1.ResourcesProgressing).Status)
	if got != want {
		t.Errorf("%s: %s, want %s", when, got, want)
	}
}

var (
	rollingOut = health.Verdict{Progressing: "1 of 2"}
	broken     = health.Verdict{Unhealthy: "too few"}
	unobserved = health.Verdict{Unhealthy: "observed generation outdated (1/2)", Progressing: "observed generation outdated (1/2)", Unobserved: true}
)

// TestJudgeUnobserved checks that a change that the controller of an object has not observed is not reported at first. If it is
// never observed, the condition reports this once and does not flap.
func TestJudgeUnobserved(t *testing.T) {
	l := newLife(0)
	l.look(health.Verdict{}, nil)
	l.expect(t, "healthy", "True ResourcesHealthy False")
	var history []string
	for range 300 {
		again := l.look(unobserved, nil)
		healthy := conditionOf(l.mr, resourcesv1alpha1.ResourcesHealthy)
		if said := string(healthy.Status) + " " + healthy.Reason; len(history) == 0 || history[len(history)-1] != said {
			history = append(history, said)
		}
		l.clock.Step(max(min(again, time.Second), 100*time.Millisecond))
	}
	if got, want := strings.Join(history, ", "), "True ResourcesHealthy, False DeploymentUnhealthy"; got != want {
		t.Errorf("got the statuses %s, want %s", got, want)
	}
	l.memory = &memory{} // a restart
	for range 20 {
		l.look(unobserved, nil)
		l.expect(t, "after a restart", "False DeploymentUnhealthy True")
		l.clock.Step(time.Second)
	}
	l.look(health.Verdict{}, nil)
	l.clock.Step(recovery)
	l.look(health.Verdict{}, nil)
	l.expect(t, "observed", "True ResourcesHealthy False")
	l.look(unobserved, nil)
	l.expect(t, "changed again", "True ResourcesHealthy True")
}

// recovery is longer than objects must be healthy during a rollout before they are reported as healthy.
const recovery = 6 * time.Second

func TestJudgeNamesUnobservedBesideOthers(t *testing.T) {
	m := &memory{}
	subjects := []health.Subject{
		{Kind: "Deployment", Name: "a", Verdict: broken}, {Kind: "Deployment", Name: "b", Verdict: unobserved},
	}
	found, again := m.observe(resourcesv1alpha1.Condition{}, subjects, noon)
	if strings.Contains(found.Message, "outdated") || again != unobservedFor {
		t.Errorf("immediately: %q, next check after %s", found.Message, again)
	}
	if found, again = m.observe(resourcesv1alpha1.Condition{}, subjects, noon.Add(unobservedFor)); !strings.Contains(found.Message, "outdated") || again != 0 {
		t.Errorf("after %s: %q, next check after %s", unobservedFor, found.Message, again)
	}
}

// TestJudgeStuck checks that a rollout that takes too long counts as unhealthy, is reported in time, and causes no further
// writes.
func TestJudgeStuck(t *testing.T) {
	const threshold = time.Minute
	l := newLife(threshold)
	l.look(health.Verdict{}, nil)
	l.clock.Step(time.Hour)
	started := l.clock.Now()
	for l.clock.Since(started) < threshold {
		again := l.look(rollingOut, nil)
		l.expect(t, "rolling out", "True ResourcesHealthy True")
		if again <= 0 || again > threshold+time.Second {
			t.Fatalf("%s after the start: next check after %s", l.clock.Since(started), again)
		}
		l.clock.Step(again)
	}
	if again := l.look(rollingOut, nil); again != 0 {
		t.Errorf("a stuck rollout is checked again after %s", again)
	}
	l.expect(t, "stuck", "False RolloutStuck True")
	if message := conditionOf(l.mr, resourcesv1alpha1.ResourcesHealthy).Message; message != `The rollout takes longer than 1m0s: Deployment "a/web" is progressing: 1 of 2` {
		t.Errorf("the message is %q", message)
	}
	l.look(health.Verdict{Progressing: "1 of 2", Unhealthy: "too few"}, nil)
	l.expect(t, "unhealthy, too", "False DeploymentUnhealthy True")
	l.look(rollingOut, nil)
	l.expect(t, "stuck again", "False RolloutStuck True")
	again := l.look(health.Verdict{}, nil)
	l.clock.Step(again)
	l.look(health.Verdict{}, nil)
	l.expect(t, "done", "True ResourcesHealthy False")
}

func TestJudgeNeverStuckWithoutThreshold(t *testing.T) {
	l := newLife(0)
	l.look(health.Verdict{}, nil)
	for range 5 {
		if again := l.look(rollingOut, nil); again != 0 {
			t.Errorf("next check after %s", again)
		}
		l.clock.Step(24 * time.Hour)
	}
	l.expect(t, "after days", "True ResourcesHealthy True")
}

// TestJudgeBadChecks checks that health checks that do not compile are reported immediately, regardless of other results.
func TestJudgeBadChecks(t *testing.T) {
	l := newLife(time.Minute)
	l.look(rollingOut, nil)
	l.look(rollingOut, errors.New("healthChecks[0].healthy: line 1"))
	l.expect(t, "bad checks", "False HealthCheckError True")
	if message := conditionOf(l.mr, resourcesv1alpha1.ResourcesHealthy).Message; !strings.HasSuffix(message, "cannot be used: healthChecks[0].healthy: line 1") {
		t.Errorf("the message is %q", message)
	}
	l.look(broken, errors.New(strings.Repeat("x", 10_000)))
	if length := len(conditionOf(l.mr, resourcesv1alpha1.ResourcesHealthy).Message); length > 4096 {
		t.Errorf("the message has %d bytes", length)
	}
}

// TestJudgeHoldsBackDuringRollouts checks that unhealthy objects are reported during a rollout only if they stay unhealthy.
func TestJudgeHoldsBackDuringRollouts(t *testing.T) {
	l := newLife(0)
	l.look(health.Verdict{}, nil)
	l.clock.Step(time.Hour)
	l.look(broken, nil)
	l.expect(t, "broken at rest", "False DeploymentUnhealthy False")
	l.look(health.Verdict{}, nil)
	l.expect(t, "repaired at rest", "True ResourcesHealthy False")
	both := health.Verdict{Unhealthy: "too few", Progressing: "1 of 2"}
	if again := l.look(both, nil); again != 30*time.Second {
		t.Errorf("next check after %s", again)
	}
	l.expect(t, "rolling out", "True ResourcesHealthy True")
	l.clock.Step(30 * time.Second)
	l.look(both, nil)
	l.expect(t, "for long", "False DeploymentUnhealthy True")
}

// TestUnreported checks that a result is available before the condition reports it.
func TestUnreported(t *testing.T) {
	l := newLife(0)
	l.look(health.Verdict{}, nil)
	l.look(rollingOut, nil)
	unreportedNow := func() string {
		healthy := conditionOf(l.mr, resourcesv1alpha1.ResourcesHealthy)
		return unreported(l.memory.found, resourcesv1alpha1.Statement{Status: healthy.Status})
	}
	if got := unreportedNow(); got != "" {
		t.Errorf("healthy during a rollout: %q", got)
	}
	l.look(health.Verdict{Unhealthy: "too few", Progressing: "1 of 2"}, nil)
	l.expect(t, "unhealthy during a rollout", "True ResourcesHealthy True")
	if got := unreportedNow(); got != "DeploymentUnhealthy" {
		t.Errorf("unhealthy during a rollout: %q", got)
	}
	l.clock.Step(time.Minute)
	l.look(health.Verdict{Unhealthy: "too few", Progressing: "1 of 2"}, nil)
	if got := unreportedNow(); got != "" {
		t.Errorf("still returned after it was reported: %q", got)
	}
}
