package health

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-k8s/trellis/pkg/nodeagent/host"
)

// TestChecked checks that a stopped unit counts as one that fails, unless it is not installed or not enabled.
func TestChecked(t *testing.T) {
	for unit, want := range map[host.UnitState]bool{
		{Load: "loaded", Active: "active", Enabled: "enabled"}:      true,
		{Load: "loaded", Active: "active", Enabled: "disabled"}:     true,
		{Load: "loaded", Active: "failed", Enabled: "disabled"}:     true,
		{Load: "loaded", Active: "inactive", Enabled: "enabled"}:    true,
		{Load: "loaded", Active: "inactive", Enabled: "disabled"}:   false,
		{Load: "not-found", Active: "inactive"}:                     false,
		{Load: "masked", Active: "inactive", Enabled: "masked"}:     false,
		{Load: "not-found", Active: "inactive", Enabled: "enabled"}: false,
	} {
		if got := isChecked(unit); got != want {
			t.Errorf("%+v is checked: %t", unit, got)
		}
	}
}

func TestProbe(t *testing.T) {
	start := time.Unix(1e9, 0)
	p := probe{}
	for i, step := range []struct {
		after    time.Duration
		works    bool
		restarts bool
	}{
		{0, true, false}, {30 * time.Second, false, false}, {time.Minute, false, false}, {70 * time.Second, true, false}, // it works again
		{80 * time.Second, false, false}, {139 * time.Second, false, false}, {140 * time.Second, false, true},
		{150 * time.Second, false, false}, {209 * time.Second, false, false}, {210 * time.Second, false, true}, // a minute after the restart
	} {
		if got := p.observe(step.works, start.Add(step.after)); got != step.restarts {
			t.Errorf("step %d: restarts is %v", i, got)
		}
	}
}

func nodeReadySince(at time.Time) *corev1.Node {
	return &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
		{Type: corev1.NodeMemoryPressure, LastTransitionTime: metav1.NewTime(at.Add(time.Hour))},
		{Type: corev1.NodeReady, LastTransitionTime: metav1.NewTime(at)},
	}}}
}

func TestToggles(t *testing.T) {
	start := time.Unix(1e9, 0)
	for name, test := range map[string]struct {
		every time.Duration
		want  int
	}{
		"often":      {time.Minute, 4}, // of 20 changes each fifth
		"rarely":     {3 * time.Minute, 0},
		"not at all": {0, 0},
	} {
		var seen toggles
		events := 0
		for i := range 21 {
			at := start.Add(time.Duration(i) * test.every)
			for range 3 { // the same state is seen several times
				if seen.observe(nodeReadySince(at), at) {
					events++
				}
			}
		}
		if events != test.want {
			t.Errorf("%s: %d events, want %d", name, events, test.want)
		}
	}
}

func TestAddresses(t *testing.T) {
	node := &corev1.Node{}
	if internal, reachable := addresses(node); reachable || len(internal) > 0 {
		t.Error("a Node without addresses is reachable")
	}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "a"}}
	if _, reachable := addresses(node); reachable {
		t.Error("a Node with a name alone is reachable")
	}
	node.Status.Addresses = append(node.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeExternalIP, Address: "192.0.2.1"},
		corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "10.0.0.1"})
	if internal, reachable := addresses(node); !reachable || len(internal) != 1 || internal[0] != "10.0.0.1" {
		t.Errorf("got %v %v", internal, reachable)
	}
	if patch, err := restored("10.0.0.1"); err != nil || string(patch) != `{"status":{"addresses":[{"type":"InternalIP","address":"10.0.0.1"}]}}` {
		t.Errorf("got %s: %v", patch, err)
	}
}
