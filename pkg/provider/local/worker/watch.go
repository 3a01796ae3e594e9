package worker

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/extension"
	"github.com/trellis-k8s/trellis/pkg/extension/health"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/provider/local"
)

// Sources trigger a Worker when one of its machines or their ManagedResources changes.
func (a *Actuator) Sources(of cache.Cache) []source.Source {
	return append(a.emitter(flow.Plan{}).Sources(), a.MachineSources(of)...)
}

// MachineSources trigger a Worker when one of its machines changes.
func (a *Actuator) MachineSources(of cache.Cache) []source.Source {
	toWorkers := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, object client.Object) []reconcile.Request {
		return a.workersOf(ctx, object)
	})
	changed := predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return observed(e.ObjectOld) != observed(e.ObjectNew) }}
	if a.Machines.Simulated {
		return []source.Source{source.Kind[client.Object](of, &corev1.Node{}, toWorkers, changed)}
	}
	return []source.Source{source.Kind[client.Object](of, &corev1.Pod{}, toWorkers, changed)}
}

// observed returns the state of a machine from its Pod or Node.
func observed(object client.Object) Machine {
	switch of := object.(type) {
	case *corev1.Pod:
		return machineOfPod(of)
	case *corev1.Node:
		return machineOfNode(of)
	}
	return Machine{}
}

// workersOf returns requests for the Worker of the Shoot to which a machine belongs.
func (a *Actuator) workersOf(ctx context.Context, machine client.Object) []reconcile.Request {
	var all extensionsv1alpha1.WorkerList
	if err := a.Client.List(ctx, &all); err != nil {
		return nil // the cache has not synced, and its watch reports all Workers once it has
	}
	deployment := machine.GetLabels()[LabelDeployment]
	var requests []reconcile.Request
	for _, one := range all.Items {
		if one.Spec.Type == local.Type && strings.HasPrefix(deployment, one.Namespace+"-") {
			key := types.NamespacedName{Namespace: one.Namespace, Name: one.Name}
			requests = append(requests, reconcile.Request{NamespacedName: key})
		}
	}
	return requests
}

// EveryMachineReady checks whether all machines of a Worker are ready.
func (a *Actuator) EveryMachineReady(ctx context.Context, worker *extensionsv1alpha1.Worker, _ *extension.Cluster) (health.Finding, error) {
	machines, err := a.seen(ctx, worker.Namespace)
	if err != nil {
		return health.Finding{}, err
	}
	return findingOf(worker, machines), nil
}

// findingOf returns the health of a Worker from its machines.
func findingOf(worker *extensionsv1alpha1.Worker, machines []Machine) health.Finding {
	wanted, ready := 0, 0
	for _, deployment := range worker.Status.MachineDeployments {
		wanted += int(deployment.Minimum)
	}
	var unhealthy, pending []string
	for _, m := range machines {
		switch m.Phase() {
		case PhaseRunning:
			ready++
		case PhaseUnhealthy:
			unhealthy = append(unhealthy, m.Name)
		case PhasePending:
			pending = append(pending, m.Name)
		}
	}
	switch {
	case len(unhealthy) > 0:
		return health.Unhealthy(fmt.Sprintf("Machines are no longer ready: %s.", strings.Join(unhealthy, ", ")))
	case len(pending) > 0:
		return health.Progressing(fmt.Sprintf("Machines are not ready yet: %s.", strings.Join(pending, ", ")))
	case ready < wanted:
		return health.Progressing(fmt.Sprintf("%d of %d machines are ready.", ready, wanted))
	}
	return health.Healthy()
}
