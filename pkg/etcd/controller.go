package etcd

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/etcd/lease"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/requeue"
)

// Reconcile computes a plan and emits it. Each step is a no-op if nothing has to change.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	etcd := &druidv1alpha1.Etcd{}
	if err := r.Client.Get(ctx, request.NamespacedName, etcd); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !controllerutil.ContainsFinalizer(etcd, Finalizer) {
		if etcd.DeletionTimestamp != nil {
			return reconcile.Result{}, nil
		}
		if err := r.patch(ctx, etcd, func() { controllerutil.AddFinalizer(etcd, Finalizer) }); err != nil {
			return retryConflict(err)
		}
	}
	in, err := r.observe(ctx, etcd)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !in.deleting() {
		if err := r.record(ctx, &in); err != nil {
			r.Ledgers.Forget(LedgerKey(keyOf(etcd)))
			return r.fail(ctx, in, err)
		}
	}
	return r.execute(ctx, in)
}

// retryConflict retries after a short delay without an error if the written object has changed since it was read, because the
// cache will show the change soon.
func retryConflict(err error) (reconcile.Result, error) {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return reconcile.Result{RequeueAfter: requeue.AfterConflict}, nil
	}
	return reconcile.Result{}, err
}

// record writes facts that must persist to the ledger, and then to the Leases of members.
func (r *Reconciler) record(ctx context.Context, in *Inputs) error {
	owner := OwnerOf(in.Etcd)
	if err := in.Ledger.Label(ctx, r.Client); err != nil {
		return err
	}
	for _, fact := range in.facts() {
		if err := in.Ledger.Write(ctx, r.Client, owner, fact.name, flow.Entry{Value: fact.value, Time: in.Now.UTC()}); err != nil {
			return err
		}
		if fact.name == entryAcceptedLoss {
			r.Recorder.Eventf(in.Etcd, nil, corev1.EventTypeWarning, eventLossAccepted, actionReconcile,
				"The data loss of cluster %s is accepted: a new cluster is created, from the backups if there are any", fact.value)
		}
	}
	members := map[string]lease.Member{}
	for _, member := range in.Members {
		members[member.Name] = member
	}
	for _, wanted := range in.leases() {
		member, exists := members[wanted.Name]
		switch {
		case exists && upToDate(member, wanted):
		case !exists:
			if err := r.Client.Create(ctx, wanted, client.FieldOwner(fieldManager)); err != nil {
				return fmt.Errorf("create Lease %s/%s: %w", wanted.Namespace, wanted.Name, err)
			}
		default:
			if err := r.annotateLease(ctx, wanted, wanted.Annotations); err != nil {
				return err
			}
		}
	}
	for _, wanted := range in.snapshotLeases() {
		if in.snapshotLeaseExists[wanted.Name] {
			continue
		}
		if err := r.Client.Create(ctx, wanted, client.FieldOwner(fieldManager)); err != nil {
			return fmt.Errorf("create Lease %s/%s: %w", wanted.Namespace, wanted.Name, err)
		}
	}
	return nil
}

// annotateLease sets annotations on the Lease of a member.
func (r *Reconciler) annotateLease(ctx context.Context, of client.Object, annotations map[string]string) error {
	before := &coordinationv1.Lease{}
	before.Namespace, before.Name = of.GetNamespace(), of.GetName()
	after := before.DeepCopy()
	after.Annotations = annotations
	if err := r.Client.Patch(ctx, after, client.MergeFrom(before), client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("annotate Lease %s/%s: %w", of.GetNamespace(), of.GetName(), err)
	}
	return nil
}

// execute emits the plan, reports the status, and executes pending tasks.
func (r *Reconciler) execute(ctx context.Context, in Inputs) (reconcile.Result, error) {
	result, err := Plan(in)
	if err != nil {
		return r.fail(ctx, in, err)
	}
	owner := OwnerOf(in.Etcd)
	emitted, emitErr := r.Emitter.Emit(ctx, owner, result.Plan)
	if emitErr != nil && emitted.Live.ManagedResources == nil {
		return r.fail(ctx, in, emitErr)
	}
	key := BundleKey(keyOf(in.Etcd))
	_, held := emitted.Held[key]
	emission := Emission{
		Report: withError(flow.Progress(operationOf(in), owner, emitted, in.Now), emitErr),
		Applied: emitErr == nil && !held && !in.deleting() && result.NotDue == "" && result.Invalid == "" &&
			emitted.Problems[key] == "" && emitted.Pending[key] == "",
	}
	if err := r.report(ctx, in, Status(in, result, emission)); err != nil {
		if emitErr == nil {
			return retryConflict(err)
		}
		return reconcile.Result{}, errors.Join(emitErr, err)
	}
	if emitErr != nil {
		return reconcile.Result{}, emitErr
	}
	if emission.Applied {
		if err := r.removeOperation(ctx, in.Etcd); err != nil {
			return retryConflict(err)
		}
	}
	if in.deleting() {
		return r.finish(ctx, in)
	}
	if len(emitted.Plan.Tasks) > 0 {
		outcome, err := r.Runner.Run(ctx, owner, in.Ledger, emitted.Plan.Tasks)
		if err != nil {
			r.Ledgers.Forget(LedgerKey(keyOf(in.Etcd)))
			return retryConflict(err)
		}
		if outcome.Done {
			return reconcile.Result{RequeueAfter: time.Millisecond}, nil // plan again with the new ledger
		}
	}
	return requeue.At(emitted.Plan.NextAt(in.Now), in.Now), nil
}

func operationOf(in Inputs) flow.Operation {
	if in.deleting() {
		return flow.Operation{Name: "Deletion of the Etcd", Type: corev1beta1.LastOperationTypeDelete}
	}
	return flow.Operation{Name: "Reconciliation of the Etcd", Type: corev1beta1.LastOperationTypeReconcile}
}

// report updates the status if it has changed, and emits Events for conditions that need attention.
func (r *Reconciler) report(ctx context.Context, in Inputs, status druidv1alpha1.EtcdStatus) error {
	etcd := in.Etcd
	if reflect.DeepEqual(status, etcd.Status) {
		return nil
	}
	for _, condition := range status.Conditions {
		if condition.Reason != reasonDataLost && condition.Reason != reasonBackupFailed {
			continue
		}
		if before := conditionOf(etcd.Status, condition.Type); before.Reason != condition.Reason {
			r.Recorder.Eventf(etcd, nil, corev1.EventTypeWarning, condition.Reason, actionReconcile, "%s", condition.Message)
		}
	}
	before := client.MergeFromWithOptions(etcd.DeepCopy(), client.MergeFromWithOptimisticLock{})
	etcd.Status = status
	if err := r.Client.Status().Patch(ctx, etcd, before, client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("write the status of Etcd %s: %w", keyOf(etcd), err)
	}
	return nil
}

func conditionOf(status druidv1alpha1.EtcdStatus, kind druidv1alpha1.ConditionType) druidv1alpha1.Condition {
	for _, condition := range status.Conditions {
		if condition.Type == kind {
			return condition
		}
	}
	return druidv1alpha1.Condition{}
}

// removeOperation removes the annotations that requested the operation. The status already reports that it was
// executed.
func (r *Reconciler) removeOperation(ctx context.Context, etcd *druidv1alpha1.Etcd) error {
	if etcd.Annotations[AnnotationOperation] != OperationReconcile && etcd.Annotations[AnnotationDruidOperation] != OperationReconcile {
		return nil
	}
	return r.patch(ctx, etcd, func() {
		for _, key := range []string{AnnotationOperation, AnnotationDruidOperation} {
			if etcd.Annotations[key] == OperationReconcile {
				delete(etcd.Annotations, key)
			}
		}
	})
}

// patch writes a change of the metadata of an Etcd with optimistic locking.
func (r *Reconciler) patch(ctx context.Context, etcd *druidv1alpha1.Etcd, change func()) error {
	before := client.MergeFromWithOptions(etcd.DeepCopy(), client.MergeFromWithOptimisticLock{})
	change()
	if err := r.Client.Patch(ctx, etcd, before, client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("write Etcd %s: %w", keyOf(etcd), err)
	}
	return nil
}

// finish removes the finalizer of an Etcd when nothing is left of it except its volumes.
func (r *Reconciler) finish(ctx context.Context, in Inputs) (reconcile.Result, error) {
	owner := OwnerOf(in.Etcd)
	emitted, err := flow.Emitted(ctx, r.Emitter.Reader, owner)
	if err != nil || len(emitted) > 0 {
		return reconcile.Result{}, err // the watch reports their deletion
	}
	left, err := flow.Remaining(ctx, r.Uncached, owner, in.Etcd.Namespace)
	if err != nil {
		return reconcile.Result{}, err
	}
	if len(left) > 0 {
		return reconcile.Result{RequeueAfter: time.Second}, nil // the cache does not show them yet
	}
	members, err := listMembers(ctx, r.Uncached, keyOf(in.Etcd))
	if err != nil {
		return reconcile.Result{}, err
	}
	names := []string{lease.FullName(in.Etcd.Name), lease.DeltaName(in.Etcd.Name)}
	if !in.snapshotLeaseExists[names[0]] && !in.snapshotLeaseExists[names[1]] {
		names = nil
	}
	for _, member := range members {
		names = append(names, member.Name)
	}
	for _, name := range names {
		lease := &coordinationv1.Lease{}
		lease.Namespace, lease.Name = in.Etcd.Namespace, name
		if err := client.IgnoreNotFound(r.Client.Delete(ctx, lease)); err != nil {
			return reconcile.Result{}, fmt.Errorf("delete Lease %s/%s: %w", in.Etcd.Namespace, name, err)
		}
	}
	key := LedgerKey(keyOf(in.Etcd))
	ledger := &corev1.Secret{}
	ledger.Namespace, ledger.Name = key.Namespace, key.Name
	if err := client.IgnoreNotFound(r.Client.Delete(ctx, ledger)); err != nil {
		return reconcile.Result{}, fmt.Errorf("delete the ledger of Etcd %s: %w", keyOf(in.Etcd), err)
	}
	r.Ledgers.Forget(key)
	return retryConflict(r.patch(ctx, in.Etcd, func() { controllerutil.RemoveFinalizer(in.Etcd, Finalizer) }))
}
