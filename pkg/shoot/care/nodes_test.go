package care

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	nodepkg "github.com/trellis-k8s/trellis/pkg/node"
)

// withNodes adds a pool of two nodes to a Shoot, with changes.
func withNodes(change ...func(*Observation)) func(*Observation) {
	return func(o *Observation) {
		o.Shoot.Spec.Kubernetes.Version = "1.37.1"
		o.Shoot.Spec.Provider.Workers = []corev1beta1.Worker{{Name: "a", Minimum: 2, Maximum: 3}}
		o.Cluster.Nodes = &Nodes{Checksums: map[string]string{"key": "1"}, Items: []Node{
			{Name: "one", Pool: "a", Secret: "key", Applied: "1", Kubelet: "v1.37.1"},
			{Name: "two", Pool: "a", Secret: "key", Applied: "1", Kubelet: "v1.37.1"},
		}}
		for _, each := range change {
			each(o)
		}
	}
}

func nodesCondition(o Observation) *corev1beta1.Condition {
	conditions, _ := o.Conditions()
	return corev1beta1.FindCondition(conditions, corev1beta1.ShootEveryNodeReady)
}

func TestEveryNodeReady(t *testing.T) {
	of := func(change func(*Node)) func(*Observation) {
		return func(o *Observation) { change(&o.Cluster.Nodes.Items[0]) }
	}
	for name, test := range map[string]struct {
		change        func(*Observation)
		want, message string
	}{
		"ready":       {func(*Observation) {}, "True EveryNodeReady", "All nodes are ready."},
		"not ready":   {of(func(n *Node) { n.Problem = "not ready" }), "False NodeUnhealthy", "worker pool a: nodes are not healthy: one (not ready)"},
		"pressure":    {of(func(n *Node) { n.Problem, n.Pressure = "DiskPressure", true }), "False NodeUnhealthy", "one (DiskPressure)"},
		"other patch": {of(func(n *Node) { n.Kubelet = "v1.37.0" }), "False KubeletVersionMismatch", "nodes do not run kubelet 1.37.1: one (v1.37.0)"},
		"other minor": {of(func(n *Node) { n.Kubelet = "v1.36.0" }), "True EveryNodeReady", ""},
		"missing":     {func(o *Observation) { o.Cluster.Nodes.Items = o.Cluster.Nodes.Items[1:] }, "False MissingNodes", "1 of at least 2 nodes"},
		"of no pool":  {of(func(n *Node) { n.Pool = "" }), "False MissingNodes", "1 of at least 2 nodes"},
		"outdated":    {of(func(n *Node) { n.Applied = "0" }), "False OperatingSystemConfigOutdated", "configuration yet: one"},
		"new":         {of(func(n *Node) { n.Applied = "" }), "False OperatingSystemConfigOutdated", "one"},
		"waiting for the first": {
			func(o *Observation) {
				o.Cluster.Nodes.Items[0].Applied, o.Cluster.Nodes.First = "0", map[string]string{"key": "two"}
			}, "False OperatingSystemConfigOutdated", "nodes wait until two runs with the current configuration, which it applies first: one",
		},
		"outdated, leaving": {of(func(n *Node) { n.Applied, n.Leaving = "0", true }), "True EveryNodeReady", ""},
		"of an old key":     {of(func(n *Node) { n.Applied, n.Secret = "0", "old" }), "True EveryNodeReady", ""},
		"crowded":           {func(o *Observation) { o.Cluster.Nodes = &Nodes{Crowded: true} }, "False TooManyNodes", "more than 56 nodes"},
		"not running":       {func(o *Observation) { o.Asked = false }, "Unknown ConditionCheckError", ""},
		"not read":          {func(o *Observation) { o.Cluster.Nodes = nil }, "Unknown ConditionInitialized", ""},
		"not connected":     {func(o *Observation) { o.Cluster = nil }, "Unknown ConditionInitialized", ""},
		"hibernated":        {func(o *Observation) { o.Hibernated, o.Asked = true, false }, "True ConditionNotChecked", ""},
	} {
		got := nodesCondition(healthy(withNodes(test.change)))
		if got == nil || string(got.Status)+" "+got.Reason != test.want || !strings.Contains(got.Message, test.message) {
			t.Errorf("%s: got %+v, want %s with %q", name, got, test.want, test.message)
		}
		if pressure := name == "pressure" || name == "crowded"; got != nil && pressure != (len(got.Codes) > 0) {
			t.Errorf("%s: the codes are %v", name, got.Codes)
		}
	}
	if got := nodesCondition(healthy()); got != nil {
		t.Errorf("a Shoot without workers has the condition %+v", got)
	}
}

// TestNodesStayAsReported checks that a restart of gardenlet does not change the condition until the nodes are read again.
func TestNodesStayAsReported(t *testing.T) {
	before := corev1beta1.Condition{Type: corev1beta1.ShootEveryNodeReady, Status: corev1beta1.ConditionTrue, Reason: "EveryNodeReady", Message: "before"}
	got := nodesCondition(healthy(withNodes(func(o *Observation) {
		o.Cluster.Nodes, o.Shoot.Status.Conditions = nil, []corev1beta1.Condition{before}
	})))
	if got == nil || got.Message != "before" {
		t.Errorf("got %+v", got)
	}
}

// TestHeartbeatsOfNodes checks that only changes on which the condition depends trigger a check.
func TestHeartbeatsOfNodes(t *testing.T) {
	node := func(change func(*corev1.Node)) *corev1.Node {
		made := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.NewTime(now)},
		}}}
		change(made)
		return made
	}
	for name, test := range map[string]struct {
		change func(*corev1.Node)
		same   bool
	}{
		"heartbeat": {func(n *corev1.Node) { n.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(now.Add(1)) }, true},
		"label":     {func(n *corev1.Node) { n.Labels = map[string]string{"x": "y"} }, true},
		"images":    {func(n *corev1.Node) { n.Status.Images = []corev1.ContainerImage{{SizeBytes: 1}} }, true},
		"ready":     {func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }, false},
		"applied":   {func(n *corev1.Node) { n.Annotations = map[string]string{annotationApplied: "1"} }, false},
		"kubelet":   {func(n *corev1.Node) { n.Status.NodeInfo.KubeletVersion = "v1.37.2" }, false},
		"leaving":   {func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: nodepkg.TaintLeaving}} }, false},
	} {
		if got := sameNode(node(func(*corev1.Node) {}), node(test.change)); got != test.same {
			t.Errorf("%s: same %t", name, got)
		}
	}
}

// TestTooManyNodes checks that the watch ends at the limit, counts a node once, and not after its deletion.
func TestTooManyNodes(t *testing.T) {
	stopped, reports := false, 0
	watch := &nodeWatch{seen: map[types.UID]bool{}, limit: 2, stop: func() { stopped = true }}
	add := func(uid string) {
		if _, err := watch.reduce(&corev1.Node{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}}, func() { reports++ }); err != nil {
			t.Fatal(err)
		}
	}
	for _, uid := range []string{"a", "b", "a"} {
		add(uid)
	}
	watch.deletions().OnDelete(&corev1.Node{ObjectMeta: metav1.ObjectMeta{UID: "a"}})
	add("c")
	if watch.isCrowded() || stopped {
		t.Fatal("the watch ended at the limit")
	}
	add("d")
	add("e")
	nodes, err := watch.read(t.Context())
	if err != nil || !stopped || reports != 1 || nodes == nil || !nodes.Crowded {
		t.Errorf("%+v, %v, stopped %t, reported %d times", nodes, err, stopped, reports)
	}
}
