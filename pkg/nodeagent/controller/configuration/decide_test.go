package configuration

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

func TestWait(t *testing.T) {
	now := time.Unix(1e9, 0)
	for name, test := range map[string]struct {
		facts      facts
		want       time.Duration
		forAnother bool
	}{
		"the turn of another node":       {facts{wanted: "b", last: "a", delay: time.Minute, seen: now, turn: turnLater}, 0, true},
		"no node is chosen":              {facts{wanted: "b", last: "a", delay: time.Minute, seen: now.Add(-time.Minute), turn: turnOpen}, 9 * time.Minute, true},
		"no node is ever chosen":         {facts{wanted: "b", last: "a", delay: time.Minute, seen: now.Add(-unchosen), turn: turnOpen}, 0, false},
		"its turn":                       {facts{wanted: "b", last: "a", delay: time.Minute, seen: now, turn: turnFirst}, 0, false},
		"new machine, another's turn":    {facts{wanted: "b", turn: turnLater}, 0, false},
		"begun, another's turn":          {facts{wanted: "b", last: "a", begun: "b", turn: turnLater}, 0, false},
		"new machine":                    {facts{wanted: "b", delay: time.Minute, seen: now}, 0, false},
		"changed, just seen":             {facts{wanted: "b", last: "a", delay: time.Minute, seen: now}, time.Minute, false},
		"changed, seen before":           {facts{wanted: "b", last: "a", delay: time.Minute, seen: now.Add(-40 * time.Second)}, 20 * time.Second, false},
		"changed, the delay is over":     {facts{wanted: "b", last: "a", delay: time.Minute, seen: now.Add(-time.Hour)}, 0, false},
		"no delay":                       {facts{wanted: "b", last: "a", seen: now}, 0, false},
		"begun before a restart":         {facts{wanted: "b", last: "a", begun: "b", delay: time.Minute, seen: now}, 0, false},
		"another one was begun":          {facts{wanted: "c", last: "a", begun: "b", delay: time.Minute, seen: now}, time.Minute, false},
		"new machine, another was begun": {facts{wanted: "c", begun: "b", delay: time.Minute, seen: now}, 0, false},
	} {
		test.facts.now = now
		if got, forAnother := test.facts.wait(); got != test.want || forAnother != test.forAnother {
			t.Errorf("%s: waits %s, for another node: %t, want %s", name, got, forAnother, test.want)
		}
	}
}

// TestTurnOf checks which node of a pool applies a changed configuration first, and that nodes do not wait for each other without a
// controller that chooses one.
func TestTurnOf(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	for name, test := range map[string]struct {
		node         *corev1.Node
		tried, first string
		want         turn
	}{
		"tried":                          {node, "new", "two/new", turnAny},
		"this one":                       {node, "old", "one/new", turnFirst},
		"another one":                    {node, "old", "two/new", turnLater},
		"none is chosen yet":             {node, "old", "", turnOpen},
		"this one, for the previous one": {node, "old", "one/old", turnOpen},
		"no Node":                        {nil, "old", "one/new", turnLater},
		"no controller chooses":          {node, "-", "", turnAny},
	} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}}}
		if test.tried != "-" {
			secret.Annotations[constants.AnnotationNodeAgentTriedChecksum] = test.tried
			secret.Annotations[constants.AnnotationNodeAgentFirstNode] = test.first
		}
		if got := turnOf(test.node, secret, "new"); got != test.want {
			t.Errorf("%s: got %d, want %d", name, got, test.want)
		}
	}
}

func TestDelayOf(t *testing.T) {
	secret, serial := &corev1.Secret{}, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		constants.AnnotationNodeAgentSerialReconciliation: "true",
	}}}
	node := func(delay string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{constants.AnnotationNodeAgentReconciliationDelay: delay}}}
	}
	for name, test := range map[string]struct {
		node   *corev1.Node
		secret *corev1.Secret
		want   time.Duration
	}{
		"a delay": {node("1m30s"), secret, 90 * time.Second}, "serial": {node("1m30s"), serial, 0}, "no node": {nil, secret, 0},
		"no delay": {&corev1.Node{}, secret, 0}, "no duration": {node("soon"), secret, 0}, "negative": {node("-1s"), secret, 0},
	} {
		if got := delayOf(test.node, test.secret); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
}

func TestReport(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	says := report{checksum: "c", version: "1.37.1", zone: "z", at: at}
	node := &corev1.Node{}
	for name, test := range map[string]struct {
		report              report
		labels, annotations map[string]string
		want                string
	}{
		"nothing yet": {says, nil, nil, `{"metadata":{"annotations":{"checksum/cloud-config-data":"c","node-agent.gardener.cloud/applied-at":"2026-01-02T03:04:05Z","worker.gardener.cloud/kubernetes-version":"1.37.1"},` +
			`"labels":{"node-role.kubernetes.io/worker":"","topology.kubernetes.io/zone":"z","worker.gardener.cloud/kubernetes-version":"1.37.1"}}}`},
		"all": {
			says, map[string]string{"node-role.kubernetes.io/worker": "", "topology.kubernetes.io/zone": "z", "worker.gardener.cloud/kubernetes-version": "1.37.1"},
			map[string]string{"checksum/cloud-config-data": "c", "worker.gardener.cloud/kubernetes-version": "1.37.1"}, "",
		},
		"another checksum, and no zone is known": {
			report{checksum: "d", version: "1.37.1", controlPlane: true, at: at},
			map[string]string{"node-role.kubernetes.io/control-plane": "", "topology.kubernetes.io/zone": "z", "worker.gardener.cloud/kubernetes-version": "1.37.1"},
			map[string]string{"checksum/cloud-config-data": "c", "worker.gardener.cloud/kubernetes-version": "1.37.1"},
			`{"metadata":{"annotations":{"checksum/cloud-config-data":"d","node-agent.gardener.cloud/applied-at":"2026-01-02T03:04:05Z"}}}`,
		},
	} {
		node.Labels, node.Annotations = test.labels, test.annotations
		if got, err := test.report.patch(node); err != nil || string(got) != test.want {
			t.Errorf("%s: got %s: %v", name, got, err)
		}
	}
}
