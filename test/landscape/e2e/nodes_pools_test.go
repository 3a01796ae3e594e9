package e2e

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// kubelet changes a setting of kubelet. It is applied on the nodes, and no container starts again.
func (n *shootNodes) kubelet() {
	n.t.Helper()
	n.openShop()
	old, err := n.nodeUIDs(n.inside)
	must(n.t, err)
	before, began := n.containers(), time.Now()
	n.setMaxPods(150 + int32(began.Unix()%50))
	n.t.Logf("A setting of kubelet was applied on all nodes after %s", time.Since(began).Round(time.Second))
	n.settled("the Shoot is reconciled", 2)
	n.sameContainers(before, "the change of kubelet")
	n.sameNodes(old, "the change of kubelet")
}

// setMaxPods changes the number of Pods that kubelet accepts, and waits until all nodes have it.
func (n *shootNodes) setMaxPods(count int32) {
	n.t.Helper()
	n.change(func(spec *corev1beta1.ShootSpec) {
		if spec.Kubernetes.Kubelet == nil {
			spec.Kubernetes.Kubelet = &corev1beta1.KubeletConfig{}
		}
		spec.Kubernetes.Kubelet.MaxPods = ptr.To(count)
	})
	n.within(nodesTimeout, fmt.Sprintf("all nodes accept %d Pods", count), func() error { return n.accept(int64(count)) })
}

// accept returns an error unless all nodes accept a number of Pods.
func (n *shootNodes) accept(count int64) error {
	var errs []error
	for _, node := range n.nodeList("") {
		if pods := node.Status.Allocatable[corev1.ResourcePods]; pods.Value() != count {
			errs = append(errs, fmt.Errorf("%s accepts %s", node.Name, pods.String()))
		}
	}
	return errors.Join(errs...)
}

// sameNodes fails if a node has been replaced.
func (n *shootNodes) sameNodes(old map[types.UID]bool, during string) {
	n.t.Helper()
	present, err := n.nodeUIDs(n.inside)
	must(n.t, err)
	for uid := range old {
		if !present[uid] {
			n.t.Errorf("%s: the node %s was replaced", during, uid)
		}
	}
}

// scaling adds a node to the pool and removes it. The other nodes stay, and a user's program answers all requests.
func (n *shootNodes) scaling() {
	n.t.Helper()
	old, err := n.nodeUIDs(n.inside)
	must(n.t, err)
	customers := n.startCustomers(n.openShop())
	for _, count := range []int32{3, 2} {
		n.change(func(spec *corev1beta1.ShootSpec) {
			spec.Provider.Workers[0].Minimum, spec.Provider.Workers[0].Maximum = count, count
		})
		n.t.Logf("%d nodes were ready after %s", count, n.settled(fmt.Sprintf("%d nodes are ready", count), int(count)))
	}
	customers.stop()
	n.noneFailed([]*user{customers}, "scaling")
	n.sameNodes(old, "scaling")
}

// pools adds a pool with a label and a taint, and removes it. The nodes of the other pool stay.
func (n *shootNodes) pools() {
	n.t.Helper()
	old, err := n.nodeUIDs(n.inside)
	must(n.t, err)
	taint := corev1.Taint{Key: "dedicated", Value: "batch", Effect: corev1.TaintEffectNoSchedule}
	n.change(func(spec *corev1beta1.ShootSpec) {
		pool := *spec.Provider.Workers[0].DeepCopy()
		pool.Name, pool.Minimum, pool.Maximum = "batch", 1, 1
		pool.Labels, pool.Taints = map[string]string{"tier": "batch"}, []corev1.Taint{taint}
		pool.SystemComponents = &corev1beta1.WorkerSystemComponents{Allow: false}
		spec.Provider.Workers = append(spec.Provider.Workers[:1], pool)
	})
	n.t.Logf("A further pool had its node after %s", n.settled("the further pool has its node", 3))
	added := n.nodeList("batch")
	if len(added) != 1 || added[0].Labels["tier"] != "batch" || !hasTaint(added[0].Spec.Taints, taint) {
		n.t.Errorf("the nodes of the further pool are %+v", added)
	}
	n.change(func(spec *corev1beta1.ShootSpec) { spec.Provider.Workers = spec.Provider.Workers[:1] })
	n.t.Logf("The node of a removed pool was gone after %s", n.settled("the node of the removed pool is gone", 2))
	n.sameNodes(old, "the change of pools")
}

func hasTaint(taints []corev1.Taint, want corev1.Taint) bool {
	for _, taint := range taints {
		if taint.MatchTaint(&want) && taint.Value == want.Value {
			return true
		}
	}
	return false
}
