package e2e

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// firstNode gives the pool a configuration with which kubelet does not start, which no validation notices. Only one node gets it, and the
// Shoot names this node. The next configuration repairs it.
func (n *shootNodes) firstNode() {
	n.t.Helper()
	old, err := n.nodeUIDs(n.inside)
	must(n.t, err)
	began := time.Now()
	// kubelet refuses a maximum that is below the minimum, which is two minutes.
	n.setMaximumAgeOfImages(ptr.To(metav1.Duration{Duration: time.Second}))
	var broken []string
	n.within(nodesTimeout, "one node is not ready", func() error {
		if broken = n.nodesNotReady(); len(broken) != 1 {
			return fmt.Errorf("not ready are %q", broken)
		}
		return nil
	})
	n.t.Logf("One of %d nodes was not ready %s after an invalid setting of kubelet", len(old), time.Since(began).Round(time.Second))
	n.within(nodesTimeout, "the Shoot names the node", func() error {
		must(n.t, n.fleet.Get(n.ctx, client.ObjectKeyFromObject(n.shoot), n.shoot))
		condition := corev1beta1.FindCondition(n.shoot.Status.Conditions, corev1beta1.ShootEveryNodeReady)
		if condition == nil || condition.Status == corev1beta1.ConditionTrue || !strings.Contains(condition.Message, broken[0]) {
			return fmt.Errorf("the condition is %+v", condition)
		}
		n.t.Logf("EveryNodeReady: %s", condition.Message)
		return nil
	})
	// The nodes would have applied the configuration within this time without a first one.
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(time.Second) {
		if names := n.nodesNotReady(); !slices.Equal(names, broken) {
			n.t.Fatalf("not ready are %q, before %q", names, broken)
		}
	}
	began = time.Now()
	n.setMaximumAgeOfImages(nil)
	n.settled("the first node is repaired", len(old))
	n.t.Logf("All nodes were ready %s after the setting was corrected", time.Since(began).Round(time.Second))
	n.sameNodes(old, "a configuration that fails")
}

func (n *shootNodes) setMaximumAgeOfImages(age *metav1.Duration) {
	n.t.Helper()
	n.change(func(spec *corev1beta1.ShootSpec) {
		if spec.Kubernetes.Kubelet == nil {
			spec.Kubernetes.Kubelet = &corev1beta1.KubeletConfig{}
		}
		spec.Kubernetes.Kubelet.ImageMaximumGCAge = age
	})
}

// nodesNotReady returns the names of the nodes that are not ready.
func (n *shootNodes) nodesNotReady() []string {
	n.t.Helper()
	var names []string
	for _, node := range n.nodeList("") {
		ready := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
		if !ready {
			names = append(names, node.Name)
		}
	}
	return names
}
