package care

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// TestRolloutOfNodes checks what nodes contribute to the rollout of a version of gardenlet: those that can apply a configuration and have
// not, and those that failed soon after they did. Nodes that fail for other reasons do not stop a fleet.
func TestRolloutOfNodes(t *testing.T) {
	now := time.Unix(1e9, 0)
	of := func(change func(*Node)) func(*Observation) {
		return func(o *Observation) { change(&o.Cluster.Nodes.Items[0]) }
	}
	broken := func(after time.Duration) func(*Node) {
		return func(n *Node) { n.Problem, n.AppliedAt, n.NotReadySince = "not ready", now, now.Add(after) }
	}
	manual := func(o *Observation) {
		o.Shoot.Spec.Provider.Workers[0].UpdateStrategy, o.Cluster.Nodes.Items[0].Applied = ptr.To(corev1beta1.ManualInPlaceUpdate), "0"
	}
	unknown := flow.Nodes{Rolling: true, Failing: true} // no state is both
	for name, test := range map[string]struct {
		change func(*Observation)
		want   flow.Nodes
	}{
		"rolled out":                  {func(*Observation) {}, flow.Nodes{}},
		"outdated":                    {of(func(n *Node) { n.Applied = "0" }), flow.Nodes{Rolling: true}},
		"outdated, down":              {of(func(n *Node) { n.Applied, n.Problem = "0", "not ready" }), flow.Nodes{}},
		"outdated, leaving":           {of(func(n *Node) { n.Applied, n.Leaving = "0", true }), flow.Nodes{}},
		"new":                         {of(func(n *Node) { n.Applied = "" }), flow.Nodes{}},
		"of no pool":                  {of(func(n *Node) { n.Applied, n.Pool = "0", "" }), flow.Nodes{}},
		"broke":                       {of(broken(time.Minute)), flow.Nodes{Failing: true}},
		"broke, its clock is behind":  {of(broken(-10 * time.Second)), flow.Nodes{Failing: true}},
		"broke before":                {of(broken(-time.Hour)), flow.Nodes{}},
		"broke for another reason":    {of(broken(time.Hour)), flow.Nodes{}},
		"does not say when":           {of(func(n *Node) { n.Problem, n.NotReadySince = "not ready", now }), flow.Nodes{}},
		"without memory":              {of(func(n *Node) { n.Problem, n.Pressure, n.AppliedAt = "MemoryPressure", true, now }), flow.Nodes{}},
		"updated in place":            {manual, flow.Nodes{}},
		"hibernated":                  {func(o *Observation) { o.Hibernated, o.Cluster = true, nil }, flow.Nodes{}},
		"no workers":                  {func(o *Observation) { o.Shoot.Spec.Provider.Workers, o.Cluster = nil, nil }, flow.Nodes{}},
		"not read":                    {func(o *Observation) { o.Cluster.Nodes = nil }, unknown},
		"not connected":               {func(o *Observation) { o.Cluster = nil }, unknown},
		"more nodes than are watched": {func(o *Observation) { o.Cluster.Nodes = &Nodes{Crowded: true} }, unknown},
	} {
		got, known := healthy(withNodes(test.change)).rollout()
		if known == (test.want == unknown) || known && got != test.want {
			t.Errorf("%s: got %+v, known: %t, want %+v", name, got, known, test.want)
		}
	}
}

// TestNodeSaysWhenItBroke checks which times of a Node are kept.
func TestNodeSaysWhenItBroke(t *testing.T) {
	at := time.Unix(1e9, 0)
	object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		constants.AnnotationNodeAgentAppliedAt: at.UTC().Format(time.RFC3339),
	}}}
	object.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(at)}}
	reduced, err := (&nodeWatch{seen: map[types.UID]bool{}, limit: 1}).reduce(object, func() {})
	if err != nil {
		t.Fatal(err)
	}
	node, is := reduced.(*corev1.Node)
	if !is {
		t.Fatalf("got %T", reduced)
	}
	if got := nodeOf(node); !got.AppliedAt.Equal(at) || !got.NotReadySince.Equal(at) {
		t.Errorf("got %+v", got)
	}
	object.Status.Conditions[0].Status = corev1.ConditionTrue
	if got := nodeOf(object); !got.NotReadySince.IsZero() {
		t.Errorf("ready: got %+v", got)
	}
}
