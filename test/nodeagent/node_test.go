package nodeagent

import (
	"fmt"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/controller/configuration"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/controller/restart"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/paths"
	"github.com/trellis-k8s/trellis/test/kit"
)

// TestNode follows a machine: it gets its identity, applies its configuration, becomes a Node, and follows the changes of its configuration.
func TestNode(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "alpha")
	checksum := m.offer(basic())
	m.start()
	kit.EventuallyTrue(t, "the configuration is applied before the Node exists, because it starts kubelet", func() bool {
		return m.read("/etc/a") == "a1" && m.count("a.service") == 1 && m.count("b.service") == 1 && m.exists(paths.LastApplied)
	})
	if !strings.Contains(m.read(paths.KubeletBootstrap), m.tokenID+".0123456789abcdef") {
		t.Error("kubelet has no kubeconfig with the bootstrap token")
	}
	m.join()
	m.applied(checksum)
	m.event(configuration.ReasonApplied, checksum)
	node := m.node()
	if _, found := node.Labels["node-role.kubernetes.io/worker"]; !found || node.Labels[constants.LabelWorkerKubernetesVersion] != "1.37.1" ||
		node.Annotations["worker.gardener.cloud/kubernetes-version"] != "1.37.1" || node.Labels[corev1.LabelTopologyZone] != "zone-a" {
		t.Errorf("the Node has the labels %v and annotations %v", node.Labels, node.Annotations)
	}
	kit.EventuallyTrue(t, "credentials that are not needed any more are gone", func() bool {
		return !m.exists(paths.BootstrapToken) && !m.exists(paths.KubeletBootstrap)
	})
	kit.Eventually(t, "the Lease belongs to the Node", func() string {
		lease := &coordinationv1.Lease{}
		if err := m.admin.Get(t.Context(), client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "gardener-node-agent-" + m.name}, lease); err != nil {
			return err.Error()
		}
		if *lease.Spec.LeaseDurationSeconds != 40 || lease.OwnerReferences[0].UID != node.UID {
			return fmt.Sprint(lease)
		}
		return ""
	})
	m.changes()
	m.mistakes()
	m.restarted()
}

// changes checks that a changed configuration is applied, and nothing else is restarted.
func (m *machine) changes() {
	m.Helper()
	changed := basic()
	changed.Spec.Files[0] = textFile("/etc/a", "a2")
	changed.Spec.Files = append(changed.Spec.Files, textFile("/etc/c", "c"))
	changed.Spec.Units = append(changed.Spec.Units, service("c.service", "/etc/c"))
	m.applied(m.offer(changed))
	if m.read("/etc/a") != "a2" || m.count("a.service") != 2 || m.count("b.service") != 1 || m.count("c.service") != 1 {
		m.Errorf("a is %q, restarts are %v", m.read("/etc/a"), m.restarts)
	}
	m.applied(m.offer(basic()))
	if m.exists("/etc/c") || m.exists(paths.Units+"/c.service") || m.active["c.service"] || m.enabled["c.service"] {
		m.Error("a unit that is gone from the configuration is still there")
	}
}

// mistakes checks that a bad configuration is reported and changes nothing, that a unit that does not start is reported, and that a missing Secret
// changes nothing.
func (m *machine) mistakes() {
	m.Helper()
	bad := basic()
	bad.Spec.Files = append([]extensionsv1alpha1.File{textFile("/etc/new", "new")}, bad.Spec.Files...)
	bad.Spec.Files[1].Path = "/etc/../a"
	m.offer(bad)
	m.event(configuration.ReasonInvalid, "must be an absolute path without . and ..")
	if m.exists("/etc/new") || m.read("/etc/a") != "a1" || !m.exists(paths.Units+"/a.service") {
		m.Error("a bad configuration changed the machine")
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: m.pool}}
	kit.Must(m, m.admin.Delete(m.Context(), secret))

	failing := basic()
	failing.Spec.Files[1] = textFile("/etc/b", "b2")
	m.refuse("b.service", true)
	checksum := m.offer(failing)
	m.event(configuration.ReasonFailed, `restart b.service: systemd reports "failed"`)
	if m.read("/etc/b") != "b2" || m.read("/etc/a") != "a1" {
		m.Error("the files are not those of the configuration")
	}
	m.refuse("b.service", false)
	m.applied(checksum)
}

// restarted checks the annotation with units to restart.
func (m *machine) restarted() {
	m.Helper()
	before, starts := m.count("a.service"), m.starts
	node := m.node()
	kit.Change(m, m.admin, node, func() { node.Annotations[restart.Annotation] = "a, gardener-node-agent, not/a/unit" })
	m.event(restart.ReasonRestarted, "Restarted a.service")
	m.event(restart.ReasonFailed, `"not/a/unit.service" is not the name of a systemd unit`)
	kit.Eventually(m, "the annotation is gone, and the node agent is restarted once", func() string {
		m.mu.Lock()
		defer m.mu.Unlock()
		_, found := m.node().Annotations[restart.Annotation]
		if found || m.restarts["a.service"] != before+1 || m.restarts[paths.AgentUnit] != 0 || m.starts != starts+1 {
			return fmt.Sprintf("annotation: %v, restarts: %v, starts: %d after %d", found, m.restarts, m.starts, starts)
		}
		return ""
	})
}
