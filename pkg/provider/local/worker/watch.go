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

// Sources have a Worker looked at when one of its machines or of their ManagedResources changes.
func (a *Actuator) Sources(of cache.Cache) []source.Source {
	return append(a.emitter(flow.Plan{}).Sources(), a.MachineSources(of)...)
}

// MachineSources have a Worker looked at when one of its machines changes.
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

// observed returns what an object says about its machine.
func observed(object client.Object) Machine {
	switch of := object.(type) {
	case *corev1.Pod:
		return machineOfPod(of)
	case *corev1.Node:
		return machineOfNode(of)
	}
	return Machine{}
}

// workersOf returns the Workers of the Shoot that a machine belongs to. A Shoot has one.
func (a *Actuator) workersOf(ctx context.Context, machine client.Object) []reconcile.Request {
	var all extensionsv1alpha1.WorkerList
	if err := a.Client.List(ctx, &all); err != nil {
		return nil // the cache is not filled, and shows all of them when it is
	}
	deployment := machine.GetLabels()[LabelDeployment]
	var requests []reconcile.Request
	for _, one := range all.Items {
		if one.Spec.Type == local.Type && strings.HasPrefix(deployment, one.Namespace+"-") {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: one.Namespace, Name: one.Name}})
		}
	}
	return requests
}

// EveryMachineReady finds whether all machines of a Worker are ready.
func (a *Actuator) EveryMachineReady(ctx context.Context, worker *extensionsv1alpha1.Worker, _ *extension.Cluster) (health.Finding, error) {
	machines, err := a.seen(ctx, worker.Namespace)
	if err != nil {
		return health.Finding{}, err
	}
	return findingOf(worker, machines), nil
}

// findingOf returns what the machines of a Worker mean for its health.
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
		return health.Unhealthy(fmt.Sprintf("Machines that were ready are not ready any more: %s.", strings.Join(unhealthy, ", ")))
	case len(pending) > 0:
		return health.Progressing(fmt.Sprintf("Machines are not ready yet: %s.", strings.Join(pending, ", ")))
	case ready < wanted:
		return health.Progressing(fmt.Sprintf("%d of %d machines are ready.", ready, wanted))
	}
	return health.Healthy()
}
