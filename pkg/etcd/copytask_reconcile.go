package etcd

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/etcd/lease"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/requeue"
)

// copies runs the flow of EtcdCopyBackupsTasks, with the clients of the reconciler of Etcds.
type copies struct{ *Reconciler }

// addToManager adds the controller.
func (r *copies) addToManager(mgr ctrl.Manager) error {
	toTask := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		key := client.ObjectKey{Namespace: object.GetNamespace(), Name: object.GetLabels()[lease.LabelPartOf]}
		return []reconcile.Request{{NamespacedName: key}}
	})
	return ctrl.NewControllerManagedBy(mgr).Named(FlowNameCopy).
		For(&druidv1alpha1.EtcdCopyBackupsTask{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&resourcesv1alpha1.ManagedResource{}, flow.ToOwner(), builder.WithPredicates(flow.EmittedBy(FlowNameCopy))).
		Watches(&batchv1.Job{}, toTask, builder.WithPredicates(component(componentCopy))).
		Complete(r)
}

// Reconcile reconciles one EtcdCopyBackupsTask.
func (r *copies) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	task := &druidv1alpha1.EtcdCopyBackupsTask{}
	if err := r.Client.Get(ctx, request.NamespacedName, task); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !controllerutil.ContainsFinalizer(task, Finalizer) {
		if task.DeletionTimestamp != nil {
			return reconcile.Result{}, nil
		}
		if err := r.finalizer(ctx, task, controllerutil.AddFinalizer); err != nil {
			return retryConflict(err)
		}
	}
	in, err := r.observe(ctx, task)
	if err != nil {
		return reconcile.Result{}, err
	}
	owner := flow.Owner{Flow: FlowNameCopy, UID: task.UID, Namespace: task.Namespace, Name: task.Name}
	emitted, err := r.Emitter.Emit(ctx, owner, CopyPlan(in))
	if err != nil {
		return retryConflict(err)
	}
	if task.DeletionTimestamp != nil {
		return r.finish(ctx, owner, task)
	}
	problem := emitted.Problems[CopyKey(task)]
	if problem == "" && !in.Emitted {
		problem = in.invalid()
	}
	if status := CopyStatus(in, problem); !reflect.DeepEqual(status, task.Status) {
		before := client.MergeFromWithOptions(task.DeepCopy(), client.MergeFromWithOptimisticLock{})
		task.Status = status
		if err := r.Client.Status().Patch(ctx, task, before, client.FieldOwner(fieldManager)); err != nil {
			return retryConflict(fmt.Errorf("write the status of EtcdCopyBackupsTask %s: %w", request, err))
		}
	}
	return requeue.At(emitted.Plan.NextAt(in.Now), in.Now), nil
}

// observe reads the inputs of the plan.
func (r *copies) observe(ctx context.Context, task *druidv1alpha1.EtcdCopyBackupsTask) (CopyInputs, error) {
	in := CopyInputs{Task: task, Class: r.Options.Class, Image: r.Options.MemberImage, Now: r.Options.Clock.Now()}
	key, job, mr := CopyKey(task), &batchv1.Job{}, &resourcesv1alpha1.ManagedResource{}
	name := client.ObjectKey{Namespace: key.Namespace, Name: key.Name}
	err := r.Client.Get(ctx, name, job)
	if client.IgnoreNotFound(err) != nil {
		return in, fmt.Errorf("read Job %s: %w", key, err)
	}
	if err == nil && metav1.IsControlledBy(job, task) {
		in.Job = job
	}
	err = r.Client.Get(ctx, name, mr)
	if client.IgnoreNotFound(err) != nil {
		return in, fmt.Errorf("read ManagedResource %s: %w", key, err)
	}
	if in.Emitted = err == nil; in.Emitted || task.DeletionTimestamp != nil {
		return in, nil
	}
	if in.Source, err = r.storeSecret(ctx, task.Namespace, &task.Spec.SourceStore); err != nil {
		return in, err
	}
	in.Target, err = r.storeSecret(ctx, task.Namespace, &task.Spec.TargetStore)
	return in, err
}

// finish removes the finalizer of a task when its Job is deleted.
func (r *copies) finish(ctx context.Context, owner flow.Owner, task *druidv1alpha1.EtcdCopyBackupsTask) (reconcile.Result, error) {
	left, err := flow.Remaining(ctx, r.Uncached, owner, task.Namespace)
	if err != nil {
		return reconcile.Result{}, err
	}
	if len(left) > 0 {
		return reconcile.Result{RequeueAfter: time.Second}, nil // a watch reports its deletion, too
	}
	return retryConflict(r.finalizer(ctx, task, controllerutil.RemoveFinalizer))
}

// finalizer changes the finalizer of a task.
func (r *copies) finalizer(ctx context.Context, task *druidv1alpha1.EtcdCopyBackupsTask, change func(client.Object, string) bool) error {
	before := client.MergeFromWithOptions(task.DeepCopy(), client.MergeFromWithOptimisticLock{})
	change(task, Finalizer)
	if err := client.IgnoreNotFound(r.Client.Patch(ctx, task, before, client.FieldOwner(fieldManager))); err != nil {
		return fmt.Errorf("write the finalizers %s of EtcdCopyBackupsTask %s/%s: %w",
			strings.Join(slices.Clone(task.Finalizers), ", "), task.Namespace, task.Name, err)
	}
	return nil
}
