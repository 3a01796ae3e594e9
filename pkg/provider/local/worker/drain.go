package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubectl/pkg/drain"
)

// drainer drains the Nodes of machines.
type drainer struct {
	// kube is a client of the cluster with the Nodes.
	kube kubernetes.Interface
	// annotation is set on a Node that is being drained to the time when this began.
	annotation string
}

// drain cordons a Node and evicts its Pods, except those of DaemonSets. It does not wait for the evictions. It reports
// whether the Node is empty, and must be called again until it is. Evictions that a disruption budget rejects are retried
// by the next call.
func (d *drainer) drain(ctx context.Context, node string, now time.Time) (empty bool, err error) {
	if err := d.cordon(ctx, node, now); err != nil {
		return false, err
	}
	helper := &drain.Helper{
		Ctx: ctx, Client: d.kube, Force: true, GracePeriodSeconds: -1, IgnoreAllDaemonSets: true, DeleteEmptyDirData: true,
	}
	list, errs := helper.GetPodsForDeletion(node)
	if err := errors.Join(errs...); err != nil {
		return false, fmt.Errorf("list the Pods of node %s: %w", node, err)
	}
	pods := list.Pods()
	var failed []error
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil {
			continue
		}
		err := helper.EvictPod(pod, policyv1.SchemeGroupVersion)
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsTooManyRequests(err) {
			failed = append(failed, fmt.Errorf("evict Pod %s/%s: %w", pod.Namespace, pod.Name, err))
		}
	}
	return len(pods) == 0, errors.Join(failed...)
}

// cordon marks a Node as unschedulable and being drained.
func (d *drainer) cordon(ctx context.Context, name string, now time.Time) error {
	node, err := d.kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		if apierrors.IsNotFound(err) {
			return nil // a Node that does not exist is empty
		}
		return fmt.Errorf("read Node %s: %w", name, err)
	}
	if node.Spec.Unschedulable && node.Annotations[d.annotation] != "" {
		return nil
	}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}},"spec":{"unschedulable":true}}`, d.annotation, now.UTC().Format(time.RFC3339))
	if _, err := d.kube.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("cordon Node %s: %w", name, err)
	}
	return nil
}
