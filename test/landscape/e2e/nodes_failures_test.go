package e2e

import (
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// agentKilled kills the node agents repeatedly while they apply a changed configuration. It is applied nevertheless, and no container
// starts again.
func (n *shootNodes) agentKilled() {
	n.t.Helper()
	n.openShop()
	before, began, kills := n.containers(), time.Now(), 0
	count := int32(200 + began.Unix()%50)
	n.change(func(spec *corev1beta1.ShootSpec) {
		spec.Kubernetes.Kubelet = &corev1beta1.KubeletConfig{MaxPods: ptr.To(count)}
	})
	n.within(nodesTimeout, "the configuration is applied", func() error {
		if time.Since(began) < time.Minute {
			for _, node := range n.nodeList("") {
				if _, err := n.onMachine(node.Name, "systemctl kill --signal=KILL gardener-node-agent"); err == nil {
					kills++
				}
			}
		}
		return n.accept(int64(count))
	})
	n.t.Logf("A setting of kubelet was applied after %s, with %d kills of node agents", time.Since(began).Round(time.Second), kills)
	n.settled("the Shoot is reconciled", 2)
	n.sameContainers(before, "the change of kubelet with kills of node agents")
}

// servicesStopped stops kubelet and containerd of a node. The node agent starts them again, and no node is replaced.
func (n *shootNodes) servicesStopped() {
	n.t.Helper()
	old, err := n.nodeUIDs(n.inside)
	must(n.t, err)
	for _, unit := range []string{"kubelet", "containerd"} {
		node := n.nodeList("")[0].Name
		began := time.Now()
		_, err := n.onMachine(node, "systemctl stop "+unit)
		must(n.t, err)
		n.within(nodesTimeout, unit+" runs again", func() error {
			_, err := n.onMachine(node, "systemctl is-active "+unit)
			return errors.Join(err, n.nodesAreReady(n.inside, 2))
		})
		n.t.Logf("%s ran again %s after it was stopped", unit, time.Since(began).Round(time.Second))
	}
	n.settled("the Shoot is reconciled", 2)
	n.sameNodes(old, "stopped services")
}

// machineDeleted deletes the Pod of a machine, once as users do, and once by force. Another node is ready soon, and nothing of the first is left.
func (n *shootNodes) machineDeleted() {
	n.t.Helper()
	n.openShop()
	for _, grace := range []int64{10, 0} {
		lost := n.nodeList("")[0]
		began := time.Now()
		must(n.t, n.Delete(n.ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: n.infra().namespace, Name: lost.Name}}, client.GracePeriodSeconds(grace)))
		n.within(nodesTimeout, "another node is ready", func() error {
			if present := n.nodeList(""); slices.ContainsFunc(present, func(node corev1.Node) bool { return node.UID == lost.UID }) {
				return fmt.Errorf("the node %s still exists", lost.Name)
			}
			return n.nodesAreReady(n.inside, 2)
		})
		n.t.Logf("Another node was ready %s after a machine was deleted with a grace period of %d seconds", time.Since(began).Round(time.Second), grace)
		n.users.available(shop)
	}
	n.settled("the Shoot is reconciled", 2)
}

// controllersKilled deletes the Pods of gardenlet, provider-local and the resource-manager of the Shoot by force while a node is added and
// removed. The Shoot gets its nodes, and no other node is replaced.
func (n *shootNodes) controllersKilled() {
	n.t.Helper()
	old, err := n.nodeUIDs(n.inside)
	must(n.t, err)
	for _, count := range []int32{3, 2} {
		n.change(func(spec *corev1beta1.ShootSpec) {
			spec.Provider.Workers[0].Minimum, spec.Provider.Workers[0].Maximum = count, count
		})
		for range 3 {
			killed := n.killControllers()
			n.eventually("the controllers run again", func() error { return n.controllersRun(killed) })
		}
		n.t.Logf("%d nodes were ready %s after the controllers were killed three times", count, n.settled(fmt.Sprintf("%d nodes are ready", count), int(count)))
	}
	n.sameNodes(old, "killed controllers")
}

// controllerPods returns the Pods of the controllers that nodes depend on.
func (n *shootNodes) controllerPods() []corev1.Pod {
	n.t.Helper()
	var list corev1.PodList
	must(n.t, n.List(n.ctx, &list))
	return slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool {
		controls := pod.Namespace == constants.GardenNamespace && pod.Labels["app"] == "gardener" && pod.Labels["role"] == "gardenlet" ||
			pod.Labels["app.kubernetes.io/name"] == "gardener-extension-provider-local" ||
			pod.Namespace == n.shoot.Status.TechnicalID && pod.Labels["app"] == "gardener-resource-manager"
		return pod.DeletionTimestamp != nil || !controls
	})
}

// killControllers deletes their Pods by force, and returns the number.
func (n *shootNodes) killControllers() int {
	n.t.Helper()
	pods := n.controllerPods()
	for i := range pods {
		must(n.t, client.IgnoreNotFound(n.Delete(n.ctx, &pods[i], client.GracePeriodSeconds(0))))
	}
	if len(pods) < 3 {
		n.t.Errorf("only %d Pods of controllers were found", len(pods))
	}
	return len(pods)
}

// controllersRun returns an error unless as many Pods of controllers as before are ready.
func (n *shootNodes) controllersRun(count int) error {
	ready := 0
	for _, pod := range n.controllerPods() {
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
				ready++
			}
		}
	}
	if ready < count {
		return fmt.Errorf("%d of %d Pods are ready", ready, count)
	}
	return nil
}
