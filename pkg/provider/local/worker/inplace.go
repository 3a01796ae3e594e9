package worker

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/inplace"
)

const (
	// AnnotationUpdated on a machine and its Node is the hash of what was last updated in place. The Node has the newer one.
	AnnotationUpdated = "local.provider.extensions.gardener.cloud/in-place-hash"
	// AnnotationUpdating on a Node is the time when its update in place began.
	AnnotationUpdating = "local.provider.extensions.gardener.cloud/updating-since"
	// AnnotationTarget on such a Node is the hash to which it is updated.
	AnnotationTarget = "local.provider.extensions.gardener.cloud/updating-to"
	// LabelSelected is the label with which users choose a Node of a pool with the strategy ManualInPlaceUpdate for its update
	// (machine-controller-manager).
	LabelSelected = "node.machine.sapcloud.io/selected-for-update"

	// chosenEvery is how often the Nodes are read while users may choose them, because Nodes are not watched.
	chosenEvery = 30 * time.Second
)

// Update is the state of the updates in place of a machine.
type Update struct {
	// Hash is what was last updated, and Target what is being updated.
	Hash, Target string
	// Updating is when an update began, zero if none is in progress. WithoutPods is set if its Pods are gone, and Result is what the node
	// agent says.
	Updating       time.Time
	WithoutPods    bool
	Result, Reason string
	// Selected is set if the user has chosen the Node.
	Selected bool
}

// updateOf returns what a Node shows.
func updateOf(node *corev1.Node, before Update) Update {
	update := Update{Hash: before.Hash, Result: node.Labels[inplace.LabelResult], Reason: node.Annotations[inplace.AnnotationReason]}
	if hash := node.Annotations[AnnotationUpdated]; hash != "" {
		update.Hash = hash
	}
	if at, err := time.Parse(time.RFC3339, node.Annotations[AnnotationUpdating]); err == nil {
		update.Updating = at
	}
	update.Target, update.Selected = node.Annotations[AnnotationTarget], node.Labels[LabelSelected] == "true"
	update.WithoutPods = slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == inplace.Condition && c.Reason == inplace.ReasonReady
	})
	return update
}

// UpdateStep is the next step of the update of a machine in place.
type UpdateStep struct {
	Machine string
	// Target is the hash to which the machine is updated. The update begins, or is finished, or the machine is being drained. WithoutPods is set
	// if the Node says that it is drained.
	Target                        string
	Begins, Finished, WithoutPods bool
}

// decideUpdates adds the updates in place of all deployments to a decision. Machines of simulated Nodes have nothing to update.
func (in inputs) decideUpdates(out *outcome) error {
	out.Updated = map[string]string{}
	behind := map[string]bool{}
	for _, deployment := range in.deployments {
		if deployment.InPlaceHash == "" || in.hibernated {
			continue
		}
		out.Updated[deployment.Pool.Name] = deployment.InPlaceHash
		if in.options.Simulated {
			continue
		}
		if err := in.decideUpdatesOf(deployment, out, behind); err != nil {
			return err
		}
	}
	for pool := range behind {
		delete(out.Updated, pool)
	}
	return nil
}

// decideUpdatesOf adds the updates of a deployment. At most maxUnavailable of its machines are updated or not ready. An update that failed
// stops those that have not begun. With the strategy ManualInPlaceUpdate, the user chooses the machines, and the Worker does not wait.
func (in inputs) decideUpdatesOf(d Deployment, out *outcome, behind map[string]bool) error {
	replicas := d.replicas(false)
	_, unavailable, err := d.fenceposts(replicas)
	if err != nil {
		return err
	}
	manual := d.isManual()
	var waiting []Machine
	updating, failed, ready := 0, 0, 0
	for _, m := range sorted(in.of(d.Name), true) {
		if !m.staying() || slices.Contains(out.Removed, m.Name) {
			continue
		}
		if m.Ready {
			ready++
		}
		step := UpdateStep{Machine: m.Name, Target: m.Target, WithoutPods: m.WithoutPods, Finished: m.WithoutPods && m.Result == inplace.Successful}
		switch {
		case !m.Updating.IsZero() && m.Result == inplace.Failed:
			failed++
			out.Failed = append(out.Failed, fmt.Sprintf("machine %s could not be updated in place: %s", m.Name, m.Reason))
			out.Updates = append(out.Updates, step)
		case !m.Updating.IsZero():
			updating++
			out.Updates = append(out.Updates, step)
		case m.Hash != d.InPlaceHash && m.HasNode:
			waiting = append(waiting, m)
		case m.Hash != d.InPlaceHash: // it has not joined yet
			updating++
		}
	}
	if count := updating + failed + len(waiting); count > 0 || ready < replicas {
		behind[d.Pool.Name] = true
		if text := fmt.Sprintf("deployment %s: %d machines must be updated in place", d.Name, count); count > 0 && (!manual || updating+failed > 0) {
			out.Waiting = append(out.Waiting, text)
		}
	}
	for _, m := range waiting {
		if m.Selected || !manual && failed == 0 && updating < unavailable && (!m.Ready || ready-updating > replicas-unavailable) {
			updating++
			out.Updates = append(out.Updates, UpdateStep{Machine: m.Name, Target: d.InPlaceHash, Begins: true})
		}
	}
	return nil
}

// isManual reports whether the user chooses the machines to update.
func (d Deployment) isManual() bool {
	return d.UpdateStrategy != nil && *d.UpdateStrategy == corev1beta1.ManualInPlaceUpdate
}

// choosesUpdates reports whether the user may choose machines.
func (in inputs) choosesUpdates(updated map[string]string) bool {
	return slices.ContainsFunc(in.deployments, func(d Deployment) bool { return d.isManual() && updated[d.Pool.Name] == "" && !in.hibernated })
}

// reportUpdated sets which pools are updated in the status of a Worker. The others keep what they had.
func (in inputs) reportUpdated(worker *extensionsv1alpha1.Worker, updated map[string]string) {
	var before map[string]string
	if status := worker.Status.InPlaceUpdates; status != nil {
		before = status.WorkerPoolToHashMap
	}
	hashes := map[string]string{}
	for _, d := range in.deployments {
		if d.InPlaceHash == "" {
			continue
		}
		for _, hash := range []string{updated[d.Pool.Name], before[d.Pool.Name]} {
			if hash != "" && hashes[d.Pool.Name] == "" {
				hashes[d.Pool.Name] = hash
			}
		}
	}
	worker.Status.InPlaceUpdates = nil
	if len(hashes) > 0 {
		worker.Status.InPlaceUpdates = &extensionsv1alpha1.WorkerInPlaceUpdatesStatus{WorkerPoolToHashMap: hashes}
	}
}
