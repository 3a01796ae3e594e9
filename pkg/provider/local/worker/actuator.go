package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	providerlocalv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/providerlocal/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/extension"
	"github.com/trellis-k8s/trellis/pkg/extension/bundles"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/provider/local"
)

// FlowName distinguishes the ManagedResources of Workers from others of the extension.
const FlowName = "worker"

// drainEvery is how often a machine that is being drained is checked, because Pods on Nodes are not watched.
const drainEvery = 5 * time.Second

// Actuator manages the machines of Workers.
type Actuator struct {
	// Client reads from caches, except Secrets. Uncached reads Secrets.
	Client   client.Client
	Uncached client.Reader
	// Kube drains simulated machines, whose Nodes are in this cluster.
	Kube     kubernetes.Interface
	Deployer *bundles.Deployer
	Machines local.Machines
	Clock    clock.PassiveClock
}

var _ extension.Actuator[*extensionsv1alpha1.Worker] = &Actuator{}

// Reconcile creates missing machines, and replaces machines that are broken, have another class, or belong to an unknown pool.
func (a *Actuator) Reconcile(ctx context.Context, worker *extensionsv1alpha1.Worker, cluster *extension.Cluster) (extension.Result, error) {
	if cluster == nil {
		return extension.Result{}, fmt.Errorf("the Cluster %s with the machine images does not exist", worker.Namespace)
	}
	in, images, err := a.inputs(ctx, worker, cluster)
	if err != nil {
		return extension.Result{}, err
	}
	kube, nodes, err := a.joined(ctx, worker.Namespace, cluster, &in)
	if err != nil {
		return extension.Result{}, err
	}
	if kube == nil && in.waitsForNodes() {
		// Without their Nodes, machines would count as empty, and would be deleted without a drain.
		result, err := a.emitter(flow.Plan{Bundles: accessBundles(worker.Namespace)}).Reconcile(ctx, worker, cluster)
		result.Waiting, result.Again = "there is no token yet for the nodes of the shoot", drainEvery
		return result, err
	}
	// What fails with some machines or their Nodes, such as an eviction that a webhook refuses, does not keep others from being created or replaced.
	errs := []error{a.drainAll(ctx, kube, in.machines, in.now)}
	out, err := in.decide()
	if err != nil {
		return extension.Result{}, errors.Join(append(errs, extension.ConfigurationProblem(err))...)
	}
	if in.joins() && !in.hibernated {
		out.Plan.Bundles = append(accessBundles(worker.Namespace), out.Plan.Bundles...)
	}
	errs = append(errs, a.beginDrains(ctx, kube, out.Drain, in.now), a.deleteOrphans(ctx, in, out.Orphans), a.updateInPlace(ctx, kube, out.Updates, in.now))
	if !a.Machines.Simulated && kube != nil {
		if err := deleteNodes(ctx, kube, withoutMachine(nodes, in.machines, out.Removed)); !in.hibernated {
			errs = append(errs, err)
		}
	}
	errs = append(errs, in.report(worker, images))
	in.reportUpdated(worker, out.Updated)
	result, err := a.emitter(out.Plan).Reconcile(ctx, worker, cluster)
	if err := errors.Join(append(errs, err)...); err != nil || result.Waiting == "" && len(out.Waiting) == 0 {
		return a.again(result, in, out), err
	}
	result.Waiting = strings.Join(append(out.Waiting, out.Failed...), "; ")
	if result.Waiting == "" {
		result.Waiting = "the ManagedResources of the machines are being written"
	}
	return a.again(result, in, out), nil
}

// again sets when the next reconcile is due.
func (a *Actuator) again(result extension.Result, in inputs, out outcome) extension.Result {
	switch {
	case len(out.Drain) > 0 || anyDraining(in.machines) || len(out.Updates) > 0:
		result.Again = drainEvery
	case in.choosesUpdates(out.Updated):
		result.Again = chosenEvery
	case !out.Next.IsZero():
		result.Again = max(out.Next.Sub(in.now), time.Second)
	}
	return result
}

// anyDraining reports whether a machine is being drained.
func anyDraining(machines []Machine) bool {
	for _, m := range machines {
		if m.Phase() == PhaseDraining {
			return true
		}
	}
	return false
}

// joined returns a client for the cluster with the Nodes of machines, or nil if there is none yet, and the Nodes. It completes the machines
// with what their Nodes show.
func (a *Actuator) joined(
	ctx context.Context, namespace string, cluster *extension.Cluster, in *inputs,
) (kubernetes.Interface, []corev1.Node, error) {
	kube, err := a.connect(ctx, namespace, cluster)
	if err != nil || kube == nil || a.Machines.Simulated || in.hibernated && len(in.machines) == 0 {
		return kube, nil, err
	}
	nodes, err := nodesOf(ctx, kube)
	if err != nil {
		if in.hibernated {
			return nil, nil, nil // machines are deleted without a drain, even if the API server has stopped
		}
		return nil, nil, err
	}
	in.machines = withNodes(in.machines, nodes)
	return kube, nodes, nil
}

// Delete deletes all machines without draining them, and their Nodes.
func (a *Actuator) Delete(ctx context.Context, worker *extensionsv1alpha1.Worker, cluster *extension.Cluster) (extension.Result, error) {
	if !a.Machines.Simulated && cluster != nil {
		if result, finished, err := a.deleteMachines(ctx, worker, cluster); err != nil || !finished {
			return result, err
		}
	}
	return a.emitter(flow.Plan{}).Delete(ctx, worker, cluster)
}

// ForceDelete does the same, because machines are objects in this cluster.
func (a *Actuator) ForceDelete(
	ctx context.Context, worker *extensionsv1alpha1.Worker, cluster *extension.Cluster,
) (extension.Result, error) {
	return a.emitter(flow.Plan{}).ForceDelete(ctx, worker, cluster)
}

// Migrate retains the machines and deletes their ManagedResources.
func (a *Actuator) Migrate(ctx context.Context, worker *extensionsv1alpha1.Worker, cluster *extension.Cluster) (extension.Result, error) {
	if err := local.KeepObjects(ctx, a.Client, a.Uncached, worker); err != nil {
		return extension.Result{}, err
	}
	return a.emitter(flow.Plan{}).Migrate(ctx, worker, cluster)
}

// Restore creates the machines in the state that do not exist.
func (a *Actuator) Restore(ctx context.Context, worker *extensionsv1alpha1.Worker, cluster *extension.Cluster) (extension.Result, error) {
	return a.Reconcile(ctx, worker, cluster)
}

// emitter returns an actuator that emits a plan.
func (a *Actuator) emitter(plan flow.Plan) *bundles.Actuator[*extensionsv1alpha1.Worker] {
	return bundles.NewActuator(a.Deployer, FlowName, func(context.Context, *extensionsv1alpha1.Worker, *extension.Cluster) (flow.Plan, error) {
		return plan, nil
	})
}

// inputs reads the inputs of the decision.
func (a *Actuator) inputs(
	ctx context.Context, worker *extensionsv1alpha1.Worker, cluster *extension.Cluster,
) (inputs, []providerlocalv1alpha1.WorkerMachineImage, error) {
	in := inputs{namespace: worker.Namespace, options: a.Machines, hibernated: cluster.Hibernated(), now: a.Clock.Now(), mint: newToken}
	found, images, err := pools(ctx, a.Uncached, worker, cluster)
	if err != nil {
		return in, nil, err
	}
	if in.deployments, err = deployments(worker.Namespace, worker.Spec.Region, found); err != nil {
		return in, nil, err
	}
	state, err := providerlocalv1alpha1.Decode[providerlocalv1alpha1.WorkerState](worker.Status.State)
	if err != nil {
		return in, nil, fmt.Errorf("decode status.state: %w", err)
	}
	if state != nil {
		for i := range in.deployments {
			in.deployments[i].restore(state.Machines)
		}
	}
	if in.machines, err = a.observe(ctx, worker.Namespace); err != nil {
		return in, images, err
	}
	in.tokens, err = a.issuedTokens(ctx, worker.Namespace)
	return in, images, err
}

// ofMachines selects machines and their ManagedResources.
func ofMachines() client.MatchingLabels {
	return client.MatchingLabels{local.LabelApp: local.AppMachine, local.LabelProvider: local.Type}
}

// observe returns the machines of a Shoot: those of ManagedResources, and those that remain from another Worker of the
// Shoot. It reads ManagedResources without a cache, which may not contain those of new machines yet.
func (a *Actuator) observe(ctx context.Context, namespace string) ([]Machine, error) {
	var brought resourcesv1alpha1.ManagedResourceList
	if err := a.Uncached.List(ctx, &brought, client.InNamespace(a.Machines.Namespace), ofMachines(), client.MatchingLabels{local.LabelShoot: namespace}); err != nil {
		return nil, fmt.Errorf("list the ManagedResources of machines: %w", err)
	}
	seen, err := a.seen(ctx, namespace)
	if err != nil {
		return nil, err
	}
	return merge(brought.Items, seen), nil
}

// seen returns the existing machines of a Shoot from a cache.
func (a *Actuator) seen(ctx context.Context, namespace string) ([]Machine, error) {
	var seen []Machine
	if !a.Machines.Simulated {
		var pods corev1.PodList
		if err := a.Client.List(ctx, &pods, client.InNamespace(local.InfrastructureNamespace(namespace)), ofMachines()); err != nil {
			return nil, fmt.Errorf("list the Pods of machines: %w", err)
		}
		for i := range pods.Items {
			seen = append(seen, machineOfPod(&pods.Items[i]))
		}
		return seen, nil
	}
	var nodes corev1.NodeList
	if err := a.Client.List(ctx, &nodes, ofMachines()); err != nil {
		return nil, fmt.Errorf("list the Nodes of machines: %w", err)
	}
	for i := range nodes.Items {
		if strings.HasPrefix(nodes.Items[i].Labels[LabelDeployment], namespace+"-") {
			seen = append(seen, machineOfNode(&nodes.Items[i]))
		}
	}
	return seen, nil
}

// merge returns the machines of ManagedResources with their observed state, and the observed machines without a ManagedResource.
func merge(brought []resourcesv1alpha1.ManagedResource, seen []Machine) []Machine {
	byName := map[string]Machine{}
	for _, m := range seen {
		m.Orphaned = true
		byName[m.Name] = m
	}
	var machines []Machine
	for i := range brought {
		m := fromMeta(&brought[i])
		if one, found := byName[m.Name]; found {
			one.Orphaned, one.Deleting = false, one.Deleting || m.Deleting
			m = one
			delete(byName, m.Name)
		}
		machines = append(machines, m)
	}
	for _, m := range seen {
		if orphan, left := byName[m.Name]; left {
			machines = append(machines, orphan)
		}
	}
	return machines
}

// drainAll continues running drains, and records which machines are empty.
func (a *Actuator) drainAll(ctx context.Context, kube kubernetes.Interface, machines []Machine, now time.Time) error {
	var errs []error
	for i := range machines {
		if machines[i].Phase() != PhaseDraining {
			continue
		}
		empty, err := (&drainer{kube, AnnotationDraining}).drain(ctx, prefixMachine+machines[i].Name, now)
		machines[i].Drained = empty && err == nil
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// beginDrains starts drains of machines.
func (a *Actuator) beginDrains(ctx context.Context, kube kubernetes.Interface, names []string, now time.Time) error {
	var errs []error
	for _, name := range names {
		_, err := (&drainer{kube, AnnotationDraining}).drain(ctx, prefixMachine+name, now)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// deleteOrphans deletes machines without a ManagedResource. They have another class, so no ManagedResource can adopt them.
func (a *Actuator) deleteOrphans(ctx context.Context, in inputs, names []string) error {
	var errs []error
	for _, name := range names {
		var machine client.Object = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: local.InfrastructureNamespace(in.namespace), Name: prefixMachine + name,
		}}
		if a.Machines.Simulated {
			machine = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: prefixMachine + name}}
		}
		if err := client.IgnoreNotFound(a.Client.Delete(ctx, machine)); err != nil {
			errs = append(errs, fmt.Errorf("delete machine %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}
