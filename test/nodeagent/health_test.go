package nodeagent

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/trellis-k8s/trellis/pkg/nodeagent/controller/health"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/paths"
	"github.com/trellis-k8s/trellis/test/kit"
)

// condition waits until the Node has the condition of its units, while time passes.
func (m *machine) condition(status corev1.ConditionStatus, message string) {
	m.Helper()
	kit.Eventually(m, "the Node has the condition", func() string {
		m.pass(10 * time.Second)
		for _, each := range m.node().Status.Conditions {
			if each.Type == "SystemdUnitsReady" {
				return difference(string(status)+" "+message, string(each.Status)+" "+each.Message)
			}
		}
		return "there is no condition"
	})
}

// TestUnits checks the condition with the state of the units, and that a containerd that does not answer is restarted.
func TestUnits(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "units")
	m.fakeClock()
	m.joined(basic())
	const healthy = "All systemd units are healthy"
	m.condition(corev1.ConditionTrue, healthy)
	m.refuse("b.service", true)
	m.condition(corev1.ConditionFalse, "b.service failed")
	m.refuse("b.service", false)
	m.condition(corev1.ConditionTrue, healthy)

	m.mu.Lock()
	m.active[paths.ContainerdUnit], m.silent = true, true
	m.mu.Unlock()
	kit.Eventually(t, "containerd is restarted", func() string {
		m.pass(10 * time.Second)
		return difference("1", fmt.Sprint(m.count(paths.ContainerdUnit)))
	})
	m.event(health.ReasonContainerd, "containerd.service is restarted, because it failed for 1m0s: ctr does not work")
}
