package health

import (
	"fmt"
	"slices"
	"testing"
	"time"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit"
)

const (
	latencySets  = 20
	latencyFlips = 200
	// atRest is how long nothing may happen.
	atRest = 20 * time.Second
)

// TestLatency measures the time from the API server's answer to a change of status until a watch shows the condition. Before that, it
// checks that no requests are sent at rest, although objects are unhealthy. It runs alone because it measures.
func TestLatency(t *testing.T) {
	f := newFixture(t)
	histories := make([]*history, latencySets)
	for i := range histories {
		histories[i] = f.follow(latencyName(i))
		f.manage(latencyName(i), custom(widget, latencyName(i), ""))
	}
	// A Deployment without a node to run on exists too. Events describe it.
	f.manage("unhealthy", workload("Deployment", "replicas: 1, progressDeadlineSeconds: 5", nowhere))
	for i := range histories {
		f.eventuallySays(latencyName(i), isHealthy, isRolledOut)
	}
	f.eventuallySays("unhealthy", unhealthy("DeploymentUnhealthy", ""), progressing("DeploymentProgressing", "has timed out"))
	f.rest()

	var took []time.Duration
	for flip := range latencyFlips {
		i, stalled := flip%latencySets, flip/latencySets%2 == 0
		took = append(took, f.flip(histories[i], latencyName(i), stalled, flip))
	}
	slices.Sort(took)
	t.Logf("from a status change to the condition, %d times: p50 %s, p99 %s, maximum %s", len(took),
		took[len(took)/2].Round(100*time.Microsecond), took[len(took)*99/100].Round(100*time.Microsecond), took[len(took)-1].Round(100*time.Microsecond))
	for i, h := range histories {
		if objection := h.objectionToTimes(); objection != "" {
			t.Errorf("%s: %s", latencyName(i), objection)
		}
	}
}

func latencyName(i int) string { return fmt.Sprintf("widget-%d", i) }

// rest checks that no requests except watches are sent for a while, once the Events of unhealthy objects have been read.
func (f *fixture) rest() {
	f.Helper()
	// The Events are read twice within the first 10 seconds. By then, rollouts have been complete for half a minute.
	quiet := time.Now()
	f.eventually("no request is sent for 12 seconds", func() string {
		if sent := append(f.manager.source.Single(), f.manager.target.Single()...); len(sent) > 0 {
			f.manager.source.Forget()
			f.manager.target.Forget()
			quiet = time.Now()
			return sprint(sent)
		}
		if since := time.Since(quiet); since < 12*time.Second {
			return fmt.Sprintf("no request for %s", since)
		}
		return ""
	})
	f.staysTrue(atRest, "at rest", func() string {
		sent := append(f.manager.source.Single(), f.manager.target.Single()...)
		if len(sent) == 0 {
			return ""
		}
		return sprint(sent)
	})
}

// flip makes a Widget stall or recover, and returns how long it took until its ManagedResource reported it.
func (f *fixture) flip(h *history, name string, stalled bool, number int) time.Duration {
	f.Helper()
	status, expected := "False", isHealthy
	text := fmt.Sprintf("flip %d", number)
	if stalled {
		status, expected = "True", unhealthy("WidgetUnhealthy", text)
	}
	seen := len(h.all())
	f.setStatus(widget, name, fmt.Sprintf(`{"conditions": [{"type": "Stalled", "status": %q, "reason": "Test", "message": %q}]}`, status, text))
	answered := time.Now()
	timeout := time.NewTimer(kit.WaitTimeout)
	defer timeout.Stop()
	for {
		for _, version := range h.all()[seen:] {
			if expected.objection(version.conditions[resourcesv1alpha1.ResourcesHealthy]) == "" {
				return max(version.at.Sub(answered), 0)
			}
		}
		select {
		case <-h.grown:
		case <-timeout.C:
			f.Fatalf("flip %d of %s was not reported; the history:\n%s", number, name, h)
		}
	}
}
