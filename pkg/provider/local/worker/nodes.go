package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/extension"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// joins reports whether machines become nodes of a shoot.
func (in inputs) joins() bool {
	return !in.options.Simulated && slices.ContainsFunc(in.deployments, func(d Deployment) bool { return d.NodeAgentSecretName != nil })
}

// waitsForNodes reports whether machines have become nodes, so that nothing may be decided without them.
func (in inputs) waitsForNodes() bool {
	return in.joins() && !in.hibernated && slices.ContainsFunc(in.machines, func(m Machine) bool { return m.WasReady })
}

// nodesOf returns the Nodes of machines in a shoot.
func nodesOf(ctx context.Context, kube kubernetes.Interface) ([]corev1.Node, error) {
	list, err := kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: constants.LabelWorkerPool})
	if err != nil {
		return nil, fmt.Errorf("list the Nodes of machines: %w", err)
	}
	return slices.DeleteFunc(list.Items, func(n corev1.Node) bool { return !strings.HasPrefix(n.Name, prefixMachine) }), nil
}

// withNodes returns the machines with what their Nodes show: whether there is one, and since when it is drained.
func withNodes(machines []Machine, nodes []corev1.Node) []Machine {
	machines = slices.Clone(machines)
	for i := range machines {
		at := slices.IndexFunc(nodes, func(n corev1.Node) bool { return n.Name == prefixMachine+machines[i].Name })
		if at < 0 {
			continue
		}
		machines[i].HasNode = true
		machines[i].Update = updateOf(&nodes[at], machines[i].Update)
		if since, err := time.Parse(time.RFC3339, nodes[at].Annotations[AnnotationDraining]); err == nil {
			machines[i].Draining = since
		}
	}
	return machines
}

// withoutMachine returns the names of Nodes whose machine does not exist, or is being deleted.
func withoutMachine(nodes []corev1.Node, machines []Machine, removed []string) []string {
	var names []string
	for _, node := range nodes {
		exists := slices.ContainsFunc(machines, func(m Machine) bool {
			return prefixMachine+m.Name == node.Name && !m.Deleting && !slices.Contains(removed, m.Name)
		})
		if !exists {
			names = append(names, node.Name)
		}
	}
	return names
}

// deleteNodes deletes Nodes. Their machines cannot do that, and Pods of a Node without a machine would never end.
func deleteNodes(ctx context.Context, kube kubernetes.Interface, names []string) error {
	var errs []error
	for _, name := range names {
		if err := kube.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("delete Node %s, whose machine is deleted: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// deleteMachines deletes all machines of a Worker, and then their Nodes. It is finished when neither exists. Machines are deleted even if the
// API server of the shoot does not answer.
func (a *Actuator) deleteMachines(
	ctx context.Context, worker *extensionsv1alpha1.Worker, cluster *extension.Cluster,
) (result extension.Result, finished bool, err error) {
	machines, err := a.observe(ctx, worker.Namespace)
	if err != nil {
		return extension.Result{}, false, err
	}
	in := inputs{namespace: worker.Namespace, options: a.Machines, machines: machines, hibernated: true, now: a.Clock.Now()}
	out, err := in.decide()
	if err != nil {
		return extension.Result{}, false, err
	}
	var errs []error
	if len(machines) > 0 {
		errs = append(errs, a.deleteOrphans(ctx, in, out.Orphans))
		result, err = a.emitter(flow.Plan{Tombstones: out.Plan.Tombstones}).Reconcile(ctx, worker, cluster)
		errs = append(errs, err)
		result.Waiting, result.Again = fmt.Sprintf("%d machines are being deleted", len(machines)), drainEvery
	}
	kube, err := a.connect(ctx, worker.Namespace, cluster)
	if err != nil || kube == nil {
		return result, len(machines) == 0 && err == nil, errors.Join(append(errs, err)...)
	}
	nodes, err := nodesOf(ctx, kube)
	if err == nil {
		err = deleteNodes(ctx, kube, withoutMachine(nodes, nil, nil))
	}
	err = errors.Join(append(errs, err)...)
	return result, len(machines) == 0 && err == nil, err
}
