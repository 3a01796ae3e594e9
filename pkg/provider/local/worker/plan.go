package worker

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	providerlocalv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/providerlocal/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/extension/bundles"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/provider/local"
)

// prefixBundle is the prefix of the names of machines' ManagedResources.
const prefixBundle = "machine-"

// inputs are the inputs of the decision.
type inputs struct {
	// namespace is the namespace of the control plane, whose name is the technical ID.
	namespace   string
	options     local.Machines
	deployments []Deployment
	machines    []Machine
	hibernated  bool
	now         time.Time
	// tokens are the bootstrap tokens that exist. mint makes a new one.
	tokens []issued
	mint   func() (bootstrapToken, error)
}

// outcome is the decision for all deployments.
type outcome struct {
	Plan flow.Plan
	// Drain are the machines to drain. Orphans are the machines without a ManagedResource to delete.
	Drain, Orphans []string
	// Removed are all machines to delete.
	Removed []string
	// Waiting contains the reasons why the Worker is not finished. It is empty if it is.
	Waiting []string
	// Failed contains the reasons why broken machines are replaced, and why updates in place do not continue.
	Failed []string
	// Updates are the updates in place, and Updated the hashes of the pools whose machines are all updated.
	Updates []UpdateStep
	Updated map[string]string
	// Next is when the next reconcile is due without a change, or zero for never.
	Next time.Time
}

// decide returns the next actions for all deployments. Machines of unwanted deployments are drained and deleted. The plan
// does not contain existing machines. Their bundles remain unchanged, because Pods are immutable.
func (in inputs) decide() (outcome, error) {
	var out outcome
	in.machines = slices.Clone(in.machines)
	in.withoutToken()
	wanted := map[string]bool{}
	for _, deployment := range in.deployments {
		wanted[deployment.Name] = true
		if err := in.decideOne(deployment, &out); err != nil {
			return outcome{}, err
		}
	}
	for _, name := range in.deploymentsOfMachines() {
		if !wanted[name] {
			if err := in.decideOne(Deployment{Name: name}, &out); err != nil {
				return outcome{}, err
			}
		}
	}
	in.revoke(&out)
	err := in.decideUpdates(&out)
	return out, err
}

// decideOne adds the next actions for one deployment.
func (in inputs) decideOne(deployment Deployment, out *outcome) error {
	machines := in.of(deployment.Name)
	decision, err := decide(deployment, machines, in.hibernated, in.now)
	if err != nil {
		return err
	}
	for _, name := range decision.Create {
		if err := in.create(deployment, name, &out.Plan); err != nil {
			return err
		}
	}
	for _, m := range machines {
		switch remove := slices.Contains(decision.Delete, m.Name); {
		case remove && m.Orphaned:
			out.Orphans = append(out.Orphans, m.Name)
		case remove:
			out.Plan.Tombstones = append(out.Plan.Tombstones, flow.Tombstone{Key: in.key(m.Name)})
		case m.Orphaned && !m.Deleting && m.Class == deployment.Class:
			deployment.InPlaceHash = m.Hash // the machine is as it was
			out.Plan.Bundles = append(out.Plan.Bundles, in.bundle(deployment, m.Name, nil))
		}
	}
	out.Drain, out.Removed = append(out.Drain, decision.Drain...), append(out.Removed, decision.Delete...)
	if decision.Waiting != "" {
		out.Waiting = append(out.Waiting, decision.Waiting)
	}
	if decision.Failed != "" {
		out.Failed = append(out.Failed, decision.Failed)
	}
	if !decision.Next.IsZero() && (out.Next.IsZero() || decision.Next.Before(out.Next)) {
		out.Next = decision.Next
	}
	return nil
}

// of returns the machines of a deployment.
func (in inputs) of(deployment string) []Machine {
	var found []Machine
	for _, m := range in.machines {
		if m.Deployment == deployment {
			found = append(found, m)
		}
	}
	return found
}

// deploymentsOfMachines returns the names of the deployments that have machines, sorted.
func (in inputs) deploymentsOfMachines() []string {
	var names []string
	for _, m := range in.machines {
		names = append(names, m.Deployment)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// key returns the key of the bundle of a machine.
func (in inputs) key(machine string) flow.Key {
	return bundles.Outside(in.options.Namespace, in.namespace, prefixBundle+machine).Key
}

// create adds a new machine to a plan, with its bootstrap token if its user data has a place for one.
func (in inputs) create(deployment Deployment, machine string, plan *flow.Plan) error {
	if in.options.Simulated || !deployment.needsToken() {
		plan.Bundles = append(plan.Bundles, in.bundle(deployment, machine, nil))
		return nil
	}
	token, err := in.mint()
	if err != nil {
		return err
	}
	creation, _, _ := deployment.timeouts()
	plan.Bundles = append(plan.Bundles, in.tokenBundle(deployment, machine, token, in.now.Add(creation)), in.bundle(deployment, machine, &token))
	return nil
}

// bundle returns the bundle of a new machine.
func (in inputs) bundle(deployment Deployment, machine string, token *bootstrapToken) flow.Bundle {
	bundle := bundles.Outside(in.options.Namespace, in.namespace, prefixBundle+machine)
	bundle.Objects = deployment.objects(machine, in.namespace, in.options, token)
	bundle.Labels = deployment.labels(machine)
	bundle.Labels[local.LabelShoot] = in.namespace
	bundle.Spec.HealthChecks = []resourcesv1alpha1.HealthCheck{machineHealth("Pod"), machineHealth("Node")}
	if in.options.Simulated {
		// The node controllers of Kubernetes taint Nodes.
		bundle.Spec.DriftDetection = &resourcesv1alpha1.DriftDetection{
			Ignore: []resourcesv1alpha1.IgnoreRule{{Paths: []string{"/spec/taints"}}},
		}
	}
	return bundle
}

// machineHealth returns the health check of a machine. A machine that is not ready is progressing, because it either boots or is replaced.
func machineHealth(kind string) resourcesv1alpha1.HealthCheck {
	const ready = "has(status.conditions) && status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')"
	return resourcesv1alpha1.HealthCheck{
		Kind: kind, Healthy: ready, Progressing: "!(" + ready + ")", Message: "'the machine is not ready'",
	}
}

// report sets the status of a Worker.
func (in inputs) report(worker *extensionsv1alpha1.Worker, images []providerlocalv1alpha1.WorkerMachineImage) error {
	reported := make([]extensionsv1alpha1.MachineDeployment, 0, len(in.deployments))
	for _, deployment := range in.deployments {
		reported = append(reported, deployment.status())
	}
	asked, _ := time.Parse(time.RFC3339Nano, worker.Annotations[constants.AnnotationGardenerTimestamp])
	if before := worker.Status.MachineDeploymentsLastUpdateTime; before == nil || before.Time.Before(asked.Truncate(time.Second)) ||
		!slices.EqualFunc(worker.Status.MachineDeployments, reported, sameDeployment) {
		at := metav1.NewTime(in.now)
		worker.Status.MachineDeploymentsLastUpdateTime = &at
	}
	worker.Status.MachineDeployments = reported
	status := &providerlocalv1alpha1.WorkerStatus{
		TypeMeta: providerlocalv1alpha1.TypeMeta("WorkerStatus"), Simulated: in.options.Simulated, MachineImages: images,
	}
	state := &providerlocalv1alpha1.WorkerState{TypeMeta: providerlocalv1alpha1.TypeMeta("WorkerState")}
	machines := slices.SortedFunc(slices.Values(in.machines), func(a, b Machine) int { return strings.Compare(a.Name, b.Name) })
	for _, m := range machines {
		status.Machines = append(status.Machines, providerlocalv1alpha1.MachineStatus{
			Name: m.Name, Pool: m.Pool, Phase: string(m.Phase()), Address: m.Address, ImageVersion: m.ImageVersion,
		})
		if m.staying() {
			state.Machines = append(state.Machines, providerlocalv1alpha1.MachineState{
				Name: m.Name, Deployment: m.Deployment, Class: m.Class,
			})
		}
	}
	var err error
	if worker.Status.ProviderStatus, err = providerlocalv1alpha1.Encode(status); err != nil {
		return fmt.Errorf("status of Worker %s: %w", worker.Name, err)
	}
	if worker.Status.State, err = providerlocalv1alpha1.Encode(state); err != nil {
		return fmt.Errorf("state of Worker %s: %w", worker.Name, err)
	}
	return nil
}

// sameDeployment reports whether two statuses of a deployment are equal.
func sameDeployment(a, b extensionsv1alpha1.MachineDeployment) bool {
	return a.Name == b.Name && a.Minimum == b.Minimum && a.Maximum == b.Maximum
}
