package bastion

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	operationsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operations/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/backup"
	"github.com/trellis-k8s/trellis/pkg/requeue"
)

// Reconciler makes extensions deploy the Bastions of a Seed. Live reads the extension objects, from a cache if there is one.
type Reconciler struct {
	*backup.Seed

	Live client.Reader
}

// Reconcile reconciles one Bastion.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	bastion := &operationsv1alpha1.Bastion{}
	if err := r.Garden.Get(ctx, request.NamespacedName, bastion); err != nil {
		if apierrors.IsNotFound(err) {
			flow.Forget(FlowName, request.Namespace, request.Name)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if ptr.Deref(bastion.Spec.SeedName, "") != r.Name {
		return reconcile.Result{}, nil
	}
	if kept, err := r.Keep(ctx, bastion); err != nil || !kept {
		return reconcile.Result{}, err
	}
	in := inputs{
		owner:     flow.Owner{Flow: FlowName, UID: bastion.UID, Namespace: bastion.Namespace, Name: bastion.Name},
		namespace: r.Namespace, bastion: bastion, now: r.Clock.Now(),
	}
	result, err := r.run(ctx, &in)
	if err != nil && !apierrors.IsConflict(err) {
		text := flow.ReasonOf(err)
		err = errors.Join(err, r.report(ctx, in, nil, "", &corev1beta1.LastError{Description: text, Codes: flow.CodesOfWrite(text)}))
	}
	return result, err
}

// run reconciles a Bastion that has gardenlet's finalizer.
func (r *Reconciler) run(ctx context.Context, in *inputs) (reconcile.Result, error) {
	live, err := r.observe(ctx, in)
	if err != nil {
		return reconcile.Result{}, err
	}
	ending := in.ending() != ""
	if _, err := in.controlPlane(); err != nil && !ending {
		return reconcile.Result{}, r.report(ctx, *in, nil, "", &corev1beta1.LastError{Description: err.Error()}) // the watch of Shoots continues
	}
	if ending {
		if err := errors.Join(r.report(ctx, *in, nil, "", nil), r.force(ctx, *in, live)); err != nil {
			return reconcile.Result{}, err
		}
	}
	plan, asked, err := in.plan(func(key flow.Key, object *extensionsv1alpha1.Bastion, asked backup.Asked) flow.Bundle {
		return r.Bundle(key, object, constants.OperationReconcile, asked, "Bastion")
	})
	if err != nil {
		return reconcile.Result{}, err
	}
	if !ending {
		r.Remember(in.owner, asked) // even if Emit fails, because the ManagedResource may have been written
	}
	result, err := r.Emitter.Emit(ctx, in.owner, plan)
	if err != nil {
		return reconcile.Result{}, err
	}
	if ending {
		return r.finish(ctx, *in, live != nil, result)
	}
	failed := backup.Failing(in.live, result, plan.Bundles[0].Key)
	if failed == nil && in.live != nil && in.live.Status.LastOperation != nil && failedState(in.live.Status.LastOperation.State) {
		failed = &corev1beta1.LastError{Description: cmp.Or(in.live.Status.LastOperation.Description, "the extension failed without an error")}
	}
	return requeue.At(result.Plan.NextAt(in.now), in.now), r.report(ctx, *in, live, in.live.Ready(asked), failed)
}

func failedState(state corev1beta1.LastOperationState) bool {
	return state == corev1beta1.LastOperationStateError || state == corev1beta1.LastOperationStateFailed
}

// observe reads the Shoot, the bundles, the last request and the extension object.
func (r *Reconciler) observe(ctx context.Context, in *inputs) (live *extensionsv1alpha1.Bastion, err error) {
	shoot := &corev1beta1.Shoot{}
	err = r.Garden.Get(ctx, client.ObjectKey{Namespace: in.bastion.Namespace, Name: in.bastion.Spec.ShootRef.Name}, shoot)
	switch {
	case err == nil:
		in.shoot = shoot
	case !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("read Shoot %s/%s: %w", in.bastion.Namespace, in.bastion.Spec.ShootRef.Name, err)
	}
	if in.emitted, err = flow.Emitted(ctx, r.Emitted, in.owner); err != nil {
		return nil, err
	}
	for _, key := range in.emitted {
		if in.asked, err = r.Asked(ctx, in.owner, key); err != nil {
			return nil, err
		}
	}
	if len(in.emitted) == 0 {
		if in.asked, err = r.Asked(ctx, in.owner, in.keyOf("")); err != nil { // from memory
			return nil, err
		}
	}
	if live, err = r.live(ctx, in.owner); err == nil && live != nil {
		in.live = backup.ExtensionOf(live)
	}
	return live, err
}

// live returns the extension object of a Bastion, or nil if it does not exist. It is found by its owner, because the Shoot, which
// names the namespace, may not exist any more.
func (r *Reconciler) live(ctx context.Context, owner flow.Owner) (*extensionsv1alpha1.Bastion, error) {
	var all extensionsv1alpha1.BastionList
	if err := r.Live.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return nil, nil //nolint:nilnil // nil means that the object does not exist
		}
		return nil, fmt.Errorf("list the extensions' Bastions: %w", err)
	}
	for i := range all.Items {
		if all.Items[i].Name == owner.Name && all.Items[i].Annotations[flow.AnnotationOwner] == owner.String() {
			return all.Items[i].DeepCopy(), nil
		}
	}
	return nil, nil //nolint:nilnil // as above
}

// force passes the confirmation of a forced deletion to the extension. It does so before the deletion starts.
func (r *Reconciler) force(ctx context.Context, in inputs, live *extensionsv1alpha1.Bastion) error {
	const annotation = constants.AnnotationConfirmationForceDeletion
	if live == nil || !in.forced() || live.Annotations[annotation] == "true" {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{annotation: "true"}}})
	if err != nil {
		return fmt.Errorf("encode the confirmation of a forced deletion: %w", err)
	}
	object := &extensionsv1alpha1.Bastion{ObjectMeta: metav1.ObjectMeta{Namespace: live.Namespace, Name: live.Name}}
	err = r.Client.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(backup.FieldManager))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("force the deletion of the extension's Bastion %s/%s: %w", live.Namespace, live.Name, err)
	}
	return nil
}

// finish completes a deletion once the extension object does not exist any more.
func (r *Reconciler) finish(ctx context.Context, in inputs, exists bool, result flow.Result) (reconcile.Result, error) {
	left, err := flow.Remaining(ctx, r.Uncached, in.owner, r.Namespace)
	if err != nil {
		return reconcile.Result{}, err
	}
	if exists || len(left) > 0 {
		var failed *corev1beta1.LastError
		for _, key := range append(left, in.emitted...) {
			failed = cmp.Or(failed, backup.Failing(in.live, result, key))
		}
		return reconcile.Result{RequeueAfter: backup.DeletingEvery}, r.report(ctx, in, nil, "", failed)
	}
	r.Forget(in.owner)
	if in.bastion.DeletionTimestamp == nil {
		return reconcile.Result{}, nil // the Shoot is being deleted, and the controller-manager deletes the Bastion
	}
	return reconcile.Result{}, r.Finalizers(ctx, in.bastion, func(o client.Object) bool {
		return controllerutil.RemoveFinalizer(o, constants.GardenerName)
	})
}

// report writes the status if it has changed. live is the extension object, and why is the reason why it is not ready.
func (r *Reconciler) report(ctx context.Context, in inputs, live *extensionsv1alpha1.Bastion, why string, failed *corev1beta1.LastError) error {
	next, changed := in.condition(why, failed)
	if !changed {
		return nil
	}
	status := in.bastion.Status.DeepCopy()
	status.Conditions = corev1beta1.SetCondition(status.Conditions,
		corev1beta1.KeepTimes(corev1beta1.FindCondition(status.Conditions, next.Type), next, in.now))
	if next.Status == corev1beta1.ConditionTrue {
		status.Ingress, status.ObservedGeneration = ingressOf(live), &in.bastion.Generation
	}
	if equality.Semantic.DeepEqual(*status, in.bastion.Status) {
		return nil
	}
	before := client.MergeFrom(in.bastion.DeepCopy())
	in.bastion.Status = *status
	if err := client.IgnoreNotFound(r.Garden.Status().Patch(ctx, in.bastion, before, client.FieldOwner(backup.FieldManager))); err != nil {
		return fmt.Errorf("write the status of Bastion %s/%s: %w", in.bastion.Namespace, in.bastion.Name, err)
	}
	return nil
}

// ingressOf returns the address that the extension reports.
func ingressOf(live *extensionsv1alpha1.Bastion) *corev1.LoadBalancerIngress {
	if live == nil {
		return nil
	}
	return live.Status.Ingress.DeepCopy()
}
