package nodeagent

import (
	"context"
	"errors"
	"testing"

	"k8s.io/utils/ptr"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/agent"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/apply"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/controller/drift"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/paths"
	"github.com/trellis-k8s/trellis/test/kit"
)

// withAgent returns a configuration with the node agent itself, from an image.
func withAgent(image string) *extensionsv1alpha1.OperatingSystemConfig {
	c := basic()
	c.Spec.Files = append(c.Spec.Files, extensionsv1alpha1.File{
		Path: paths.Agent, Permissions: ptr.To[uint32](0o755),
		Content: extensionsv1alpha1.FileContent{ImageRef: &extensionsv1alpha1.FileContentImageRef{Image: image, FilePathInImage: "/gardener-node-agent"}},
	})
	c.Spec.Units = append(c.Spec.Units, service(paths.AgentUnit, paths.Agent))
	return c
}

// TestKilled kills the node agent before some of the effects of an update, among them that of its own program. The next process goes on. pkg/nodeagent/apply
// kills it before each.
func TestKilled(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "killed")
	m.images["agent:1/gardener-node-agent"], m.images["agent:2/gardener-node-agent"] = "one", "two"
	stop := m.joined(withAgent("agent:1"))
	stop()
	for i, allowed := range []int{0, 3, 8, 13, 20} {
		changed := withAgent([]string{"agent:1", "agent:2"}[(i+1)%2])
		changed.Spec.Files[0] = textFile("/etc/a", string(rune('a'+i)))
		changed.Spec.Units[1].Content = ptr.To("[Service]\nEnvironment=" + string(rune('a'+i)) + "\n")
		checksum := m.offer(changed)
		before := m.count("b.service")
		m.killed(allowed)
		stop := m.start()
		m.applied(checksum)
		stop()
		if got := m.read("/etc/a"); got != string(rune('a'+i)) {
			t.Errorf("after %d effects: /etc/a is %q", allowed, got)
		}
		if restarts := m.count("b.service") - before; restarts < 1 || restarts > 2 {
			t.Errorf("after %d effects: b was restarted %d times", allowed, restarts)
		}
		if m.exists(paths.Pending) || m.exists(paths.Previous) {
			t.Errorf("after %d effects: the journal is not empty", allowed)
		}
	}
	m.write("/etc/b", "patched by a driver")
	m.start()
	m.event(drift.Reason, "/etc/b has another content")
	if m.read("/etc/b") != "patched by a driver" {
		t.Error("drift was put back")
	}
}

// killed runs a process that can make a number of changes, and kills it then.
func (m *machine) killed(allowed int) {
	m.Helper()
	m.mu.Lock()
	m.effects, m.killAt = 0, allowed
	m.mu.Unlock()
	ctx, cancel := context.WithCancel(m.Context())
	ended := make(chan error, 1)
	go func() { ended <- agent.Run(ctx, m.options()) }()
	kit.EventuallyTrue(m, "the process is killed, or restarts itself", func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.effects > m.killAt || len(ended) > 0
	})
	cancel()
	if err := <-ended; err != nil && !errors.Is(err, apply.ErrRestart) && !errors.Is(err, errKilled) {
		m.Error(err)
	}
	m.mu.Lock()
	m.killAt = -1
	m.mu.Unlock()
}
