package shoot

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/component/machinecontrollermanager"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/flow/table"
	"github.com/trellis-k8s/trellis/pkg/shoot/state"
)

// leavingAgain is after how long a control plane whose objects for machines are being deleted is looked at again.
const leavingAgain = 5 * time.Second

// MovedMachines is what is observed of the machines of machine-controller-manager while their control plane moves.
type MovedMachines struct {
	// GivenUp is set on the source once their state is complete and final in the ShootState. Left are the objects for machines that exist
	// there, which may go after that.
	GivenUp bool
	Left    string
	// Restored is set on the destination once the extension has taken them over.
	Restored bool
}

// hasManager reports whether machine-controller-manager makes the machines.
func (in Inputs) hasManager() bool { return in.withoutMachines() == "" }

// unrestoredMachines returns why the programs that work on machines must wait for the extension: they would make and delete machines while
// it creates their objects.
func (in Inputs) unrestoredMachines() string {
	if in.Phase != phaseRestore || !in.hasManager() || in.Move.Machines.Restored {
		return ""
	}
	return "the extension for machines has not restored them yet"
}

// managerEnded reports that no Pod of machine-controller-manager exists in the namespace of a control plane.
func (r *reconciler) managerEnded(ctx context.Context, namespace string) (bool, error) {
	deployment := &metav1.PartialObjectMetadata{}
	deployment.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	err := r.uncached.Get(ctx, client.ObjectKey{Namespace: namespace, Name: machinecontrollermanager.Name}, deployment)
	if err == nil || !apierrors.IsNotFound(err) {
		return false, wrapped(err, "read the Deployment %s/%s", namespace, machinecontrollermanager.Name)
	}
	pods := &metav1.PartialObjectMetadataList{}
	pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	err = r.uncached.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabels(machinecontrollermanager.Selector()), client.Limit(1))
	return len(pods.Items) == 0, wrapped(err, "list the Pods of %s in namespace %s", machinecontrollermanager.Name, namespace)
}

func wrapped(err error, format string, arguments ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(arguments, err)...)
}

// leavingMachines returns what is known about the machines of a control plane that leaves its Seed.
func (r *reconciler) leavingMachines(ctx context.Context, in *Inputs) (state.Leaving, error) {
	leaving := state.Leaving{Machines: in.hasManager()}
	if !leaving.Machines {
		return leaving, nil
	}
	leaving.Runs = in.emitted(bundleMachines) || in.emitted(bundleClusterScaling)
	var err error
	leaving.Ended, err = r.managerEnded(ctx, in.Namespace)
	return leaving, err
}

// observeMachinesLeft reads which objects for machines are left on the source. The Worker must not be deleted before their state is complete: only
// as long as it exists, it is known that its extension has given them up.
func (r *reconciler) observeMachinesLeft(ctx context.Context, in *Inputs, left state.Left) error {
	if !in.hasManager() {
		return nil
	}
	in.Move.Machines.GivenUp = left.MachinesGivenUp
	if !left.MachinesGivenUp && in.Move.Kept[bundleWorker] == "" {
		in.Move.Kept[bundleWorker] = "the state of its machines is not stored completely yet"
	}
	var err error
	in.Move.Machines.Left, err = r.states.MachinesLeft(ctx, in.Namespace)
	return err
}

// machinesGone waits until no object for machines is left on the source. The machines stay.
func (in Inputs) machinesGone(plan *flow.Plan, _ table.Table) bool {
	reason := "objects for machines are left, whose state is stored: " + in.Move.Machines.Left
	switch {
	case !in.hasManager(), in.Move.Known && in.Move.Machines.Left == "":
		return true
	case !in.Move.Known:
		reason = "it is not known whether objects for machines are left"
	}
	plan.Waits = append(plan.Waits, flow.Wait{Name: waitMachines, Reason: reason})
	return false
}

// releaseMachines deletes the objects for machines on the source once their state is final, without deleting machines.
func (p *pass) releaseMachines(ctx context.Context) error {
	in := p.in
	if in.Phase != phaseMigrate || in.Move.Machines.Left == "" || in.emitted(bundleMachines) {
		return nil
	}
	p.Wake.In(leavingAgain) // no watch covers these objects and the Pods of machine-controller-manager
	if !in.Move.Machines.GivenUp {
		return nil
	}
	ended, err := p.managerEnded(ctx, in.Namespace)
	if err != nil {
		return err
	}
	if !ended {
		return fmt.Errorf("%s runs in namespace %s although its bundle was deleted, so that it could delete machines: delete its Deployment", machinecontrollermanager.Name, in.Namespace)
	}
	return p.states.ReleaseMachines(ctx, p.reconciler.seed, in.Shoot, in.Namespace)
}

// observeRestored finds out what the extension for machines has to do where a control plane arrives, or comes back to. Only its object says
// so: without one, it is created with the state of the machines. One that was given up gets this state before the restoration is requested.
// Once the extension has restored the machines, the state must not be used again, because they change from then on.
func (r *reconciler) observeRestored(ctx context.Context, in *Inputs, saved *corev1beta1.ShootState) error {
	if !in.hasManager() {
		return nil
	}
	worker := &extensionsv1alpha1.Worker{}
	err := r.uncached.Get(ctx, client.ObjectKey{Namespace: in.Namespace, Name: in.Shoot.Name}, worker)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		in.Move.States = withMachines(saved.Spec, in.Shoot.Name)
		return nil
	}
	if err != nil {
		return fmt.Errorf("read Worker %s/%s, whose machines are restored: %w", in.Namespace, in.Shoot.Name, err)
	}
	switch stageOf(worker) {
	case workerGivenUp:
		if saved.Annotations[constants.AnnotationMachinesGivenUp] != "true" { // they still exist, and may have changed
			if saved, err = r.states.SaveMachines(ctx, in.Shoot, in.Namespace); err != nil {
				return err
			}
		}
		in.Move.States = withMachines(saved.Spec, in.Shoot.Name)
		return r.giveState(ctx, worker, state.MachinesOf(saved.Spec))
	case workerWorks:
		in.Move.Machines.Restored = true
		if err := r.states.ForgetGivenUp(ctx, saved); err != nil {
			return err
		}
		return r.giveState(ctx, worker, nil)
	}
	in.Move.States = withMachines(saved.Spec, in.Shoot.Name)
	return nil
}

// workerStage is where a Worker is in a move.
type workerStage int

const (
	// workerArrives is for one whose restoration is not finished.
	workerArrives workerStage = iota
	// workerGivenUp is for one that its extension gives up, or has given up.
	workerGivenUp
	// workerWorks is for one whose extension works on the machines as usual.
	workerWorks
)

func stageOf(worker *extensionsv1alpha1.Worker) workerStage {
	last, asked := worker.Status.LastOperation, worker.Annotations[constants.AnnotationGardenerOperation]
	switch {
	case asked == constants.OperationMigrate, last != nil && last.Type == corev1beta1.LastOperationTypeMigrate:
		return workerGivenUp
	case last == nil, asked == constants.OperationRestore, asked == constants.OperationWaitForState,
		last.Type == corev1beta1.LastOperationTypeRestore && last.State != corev1beta1.LastOperationStateSucceeded:
		return workerArrives
	}
	return workerWorks
}

// withMachines returns the states of extensions in a ShootState, with that of the machines as the state of the Worker (Gardener).
func withMachines(spec corev1beta1.ShootStateSpec, worker string) []corev1beta1.ExtensionResourceState {
	states, machines := slices.Clone(spec.Extensions), state.MachinesOf(spec)
	if machines == nil {
		return states
	}
	made := corev1beta1.ExtensionResourceState{Kind: kindWorker, Name: ptr.To(worker), State: machines.Data.DeepCopy()}
	for i := range states {
		if states[i].Kind == kindWorker && ptr.Deref(states[i].Name, "") == worker {
			made.Resources = states[i].Resources
			states[i] = made
			return states
		}
	}
	return append(states, made)
}

// giveState sets the state of an existing Worker, or removes it.
func (r *reconciler) giveState(ctx context.Context, worker *extensionsv1alpha1.Worker, machines *corev1beta1.GardenerResourceData) error {
	var wanted any
	if machines != nil {
		wanted = machines.Data
	}
	if machines == nil && worker.Status.State == nil || machines != nil && worker.Status.State != nil && sameState(worker.Status.State.Raw, machines.Data.Raw) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": worker.UID, "resourceVersion": worker.ResourceVersion}, "status": map[string]any{"state": wanted}})
	if err == nil {
		err = r.seed.Status().Patch(ctx, worker, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(fieldManager))
	}
	return wrapped(err, "write the state of machines into the status of Worker %s/%s", worker.Namespace, worker.Name)
}

func sameState(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}
