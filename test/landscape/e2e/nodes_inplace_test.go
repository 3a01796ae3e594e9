package e2e

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/inplace"
	"github.com/trellis-k8s/trellis/test/landscape/fleet"
)

// inPlace adds a pool whose machines are not replaced, and updates their operating system and the reservations of their kubelets: one machine
// after the other, without its Pods. Then the pool is removed.
func (n *shootNodes) inPlace() {
	n.t.Helper()
	const name = "inplace"
	n.change(func(spec *corev1beta1.ShootSpec) {
		pool := *spec.Provider.Workers[0].DeepCopy()
		pool.Name, pool.Minimum, pool.Maximum, pool.UpdateStrategy = name, 2, 2, ptr.To(corev1beta1.AutoInPlaceUpdate)
		pool.MaxSurge, pool.MaxUnavailable, pool.MachineControllerManagerSettings = nil, nil, nil
		pool.Machine.Image.Version = ptr.To(fleet.MachineVersions[0])
		spec.Provider.Workers = append(spec.Provider.Workers[:1], pool)
	})
	n.t.Logf("The pool had its nodes after %s", n.settled("the pool has its nodes", 4))
	old, err := n.nodeUIDs(n.inside)
	must(n.t, err)
	began := time.Now()
	n.change(func(spec *corev1beta1.ShootSpec) {
		pool := &spec.Provider.Workers[1]
		pool.Machine.Image.Version = ptr.To(fleet.MachineVersions[1])
		pool.Kubernetes = &corev1beta1.WorkerKubernetes{Kubelet: &corev1beta1.KubeletConfig{
			KubeReserved: &corev1beta1.KubeletConfigReserved{CPU: ptr.To(resource.MustParse("123m"))},
		}}
	})
	n.within(nodesTimeout, "the Shoot reports that the pool is being updated", func() error {
		must(n.t, n.fleet.Get(n.ctx, client.ObjectKeyFromObject(n.shoot), n.shoot))
		updates := n.shoot.Status.InPlaceUpdates
		if updates == nil || updates.PendingWorkerUpdates == nil || strings.Join(updates.PendingWorkerUpdates.AutoInPlaceUpdate, ",") != name {
			return fmt.Errorf("pending are %+v", updates)
		}
		return nil
	})
	n.within(nodesTimeout, "the machines are updated", func() error { return n.updatedInPlace(name) })
	n.t.Logf("Two machines were updated in place after %s", time.Since(began).Round(time.Second))
	n.settled("the Shoot is reconciled", 4)
	n.sameNodes(old, "the update in place")
	n.within(nodesTimeout, "no pool is pending", func() error {
		must(n.t, n.fleet.Get(n.ctx, client.ObjectKeyFromObject(n.shoot), n.shoot))
		if n.shoot.Status.InPlaceUpdates != nil {
			return fmt.Errorf("pending are %+v", n.shoot.Status.InPlaceUpdates.PendingWorkerUpdates)
		}
		return nil
	})
	n.change(func(spec *corev1beta1.ShootSpec) { spec.Provider.Workers = spec.Provider.Workers[:1] })
	n.settled("the nodes of the removed pool are gone", 2)
}

// updatedInPlace returns an error unless all machines of a pool have been updated and accept Pods again. Only one is updated at a time.
func (n *shootNodes) updatedInPlace(pool string) error {
	var errs []error
	cordoned := 0
	for _, node := range n.nodeList(pool) {
		if node.Spec.Unschedulable {
			cordoned++
		}
		if node.Labels[inplace.LabelResult] != inplace.Successful || node.Spec.Unschedulable {
			errs = append(errs, fmt.Errorf("node %s: result %q %s, conditions %+v", node.Name, node.Labels[inplace.LabelResult],
				node.Annotations[inplace.AnnotationReason], node.Status.Conditions))
			continue
		}
		release, err := n.onMachine(node.Name, "cat /etc/os-release; grep -A9 kubeReserved /var/lib/kubelet/config/kubelet")
		if err == nil && (!strings.Contains(release, "Machine Image Version "+fleet.MachineVersions[1]) || !strings.Contains(release, "123m")) {
			err = fmt.Errorf("node %s has\n%s", node.Name, release)
		}
		errs = append(errs, err)
	}
	if cordoned > 1 {
		n.t.Errorf("%d machines are updated at the same time", cordoned)
	}
	return errors.Join(errs...)
}
