package node

import (
	"flag"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-k8s/trellis/pkg/node/criticalcomponents"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
)

var simulatedNodes = flag.Int("node.simulated", 50, "nodes of TestManyNodesAtOnce")

const enabled = `controllers:
  nodeCriticalComponents: {enabled: true}
  nodeAgentReconciliationDelay: {enabled: true}
webhooks:
  highAvailabilityConfig: {enabled: true}
`

// sum adds the samples of a metric whose labels match.
func sum(metrics, pattern string) int {
	total := 0.0
	for _, match := range regexp.MustCompile(`(?m)^`+pattern+` (\S+)$`).FindAllStringSubmatch(metrics, -1) {
		value, err := strconv.ParseFloat(match[1], 64)
		if err == nil {
			total += value
		}
	}
	return int(total)
}

// TestManyNodesAtOnce runs the resource-manager with all node controllers. Many simulated nodes register with the taint at once. Three
// critical DaemonSets have to become ready on each of them.
func TestManyNodesAtOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane, which -short excludes")
	}
	cp, err := controlplane.Start(t.Context(), controlplane.Options{ControllerManager: true, Scheduler: true, Nodes: 1})
	kit.Must(t, err)
	t.Cleanup(func() { kit.Must(t, cp.Stop()) })
	kit.DefineManagedResources(t, cp.Config())
	f := newFixtureOn(t, cp)
	process := kit.StartManager(t, cp.Kubeconfig(), nil, enabled)
	if log := process.Written.String(); strings.Contains(log, `"part":"controllers.node`) {
		t.Errorf("a part is missing: %s", log)
	}
	for _, name := range []string{"network", "proxy", "dns"} {
		f.daemonSet(name, func(d *appsv1.DaemonSet) { d.Spec.Template.Spec.NodeSelector = nil })
	}
	var group errgroup.Group
	group.SetLimit(16)
	for i := range *simulatedNodes {
		one := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("many-%05d", i), Labels: map[string]string{testLabel: f.namespace}},
			Spec:       corev1.NodeSpec{Taints: []corev1.Taint{notReady}},
		}
		group.Go(func() error { return f.client.Create(f.ctx, one) })
	}
	kit.Must(t, group.Wait())
	kit.Eventually(t, "all nodes are released", func() string {
		nodes := &corev1.NodeList{}
		kit.Must(t, f.client.List(f.ctx, nodes))
		left := 0
		for i := range nodes.Items {
			if criticalcomponents.HasTaint(&nodes.Items[i]) {
				left++
			}
		}
		if left > 0 {
			return fmt.Sprintf("%d nodes are not released", left)
		}
		return ""
	})
	var metrics string
	kit.Eventually(t, "the metrics count all nodes", func() string {
		_, metrics = process.Get(process.Metrics, "/metrics")
		for pattern, want := range map[string]int{
			"resource_manager_nodes_waiting_for_critical_components":                0,
			"resource_manager_node_critical_components_wait_duration_seconds_count": *simulatedNodes,
			"resource_manager_node_agent_delays":                                    *simulatedNodes + 1,
		} {
			if got := sum(metrics, pattern); got != want {
				return fmt.Sprintf("%s is %d", pattern, got)
			}
		}
		return ""
	})
	if !strings.Contains(metrics, `resource_manager_high_availability_patches_total{kind="Deployment",result="patched"} 0`) {
		t.Error("the high availability controller does not run")
	}
	events := sum(metrics, `rest_client_requests_total\{code="201",.*method="POST"\}`)
	t.Logf("%d nodes: %d patches (of the taint and of delays), %d of them refused, %d Events, %d annotations",
		*simulatedNodes, sum(metrics, `rest_client_requests_total\{.*method="PATCH"\}`), sum(metrics, `rest_client_requests_total\{code="409",.*method="PATCH"\}`),
		events, sum(metrics, `resource_manager_node_agent_delay_changes_total\{result="changed"\}`))
	// One Event for missing Pods, one for unready Pods, one of each again if they changed after ten seconds, and one at the end. A slow
	// machine gets a few more.
	if events > 12**simulatedNodes {
		t.Errorf("%d Events were written", events)
	}
}
