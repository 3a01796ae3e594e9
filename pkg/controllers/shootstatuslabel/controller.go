package shootstatuslabel

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

const (
	name         = "shoot-statuslabel"
	fieldManager = "gardener-controller-manager"
)

// AddToManager adds the controller to the manager of the garden. Its cache must contain the label of Shoots and the
// fields of the status that [Keep] copies.
func AddToManager(mgr manager.Manager, syncs int) error {
	built, err := controller.New(name, mgr, controller.Options{
		Reconciler: &reconciler{mgr.GetClient()}, MaxConcurrentReconciles: max(syncs, 1),
		SkipNameValidation: mgr.GetControllerOptions().SkipNameValidation, RecoverPanic: ptr.To(true),
	})
	if err != nil {
		return fmt.Errorf("add the controller %s: %w", name, err)
	}
	shoots := source.Kind[client.Object](mgr.GetCache(), &corev1beta1.Shoot{}, &handler.EnqueueRequestForObject{}, changed())
	if err := built.Watch(shoots); err != nil {
		return fmt.Errorf("add a watch of the controller %s: %w", name, err)
	}
	return nil
}

// Keep copies the fields on which the label depends into the status of a cached Shoot.
func Keep(into *corev1beta1.ShootStatus, status corev1beta1.ShootStatus) {
	if last := status.LastOperation; last != nil {
		into.LastOperation = &corev1beta1.LastOperation{Type: last.Type, State: last.State}
	}
	if len(status.LastErrors) > 0 {
		into.LastErrors = make([]corev1beta1.LastError, 1)
	}
	for _, condition := range status.Conditions {
		into.Conditions = append(into.Conditions, corev1beta1.Condition{Type: condition.Type, Status: condition.Status})
	}
}

// changed passes changes of the label, and of the fields on which it depends.
func changed() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, was := e.ObjectOld.(*corev1beta1.Shoot)
			after, is := e.ObjectNew.(*corev1beta1.Shoot)
			if !was || !is || before.UID != after.UID || before.Labels[constants.LabelShootStatus] != after.Labels[constants.LabelShootStatus] {
				return true
			}
			var old, changed corev1beta1.ShootStatus
			Keep(&old, before.Status)
			Keep(&changed, after.Status)
			return !equality.Semantic.DeepEqual(old, changed)
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// reconciler maintains the label of Shoots.
type reconciler struct{ client client.Client }

// Reconcile writes the label of a Shoot if it differs.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	shoot := &corev1beta1.Shoot{}
	if err := r.client.Get(ctx, request.NamespacedName, shoot); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	wanted := Of(shoot.Status)
	if shoot.Labels[constants.LabelShootStatus] == wanted {
		return reconcile.Result{}, nil
	}
	// With the UID, the API server rejects the change if another Shoot has this name now.
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": shoot.UID, "labels": map[string]string{constants.LabelShootStatus: wanted},
	}})
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("encode the label of Shoot %s: %w", request, err)
	}
	target := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: shoot.Namespace, Name: shoot.Name}}
	err = r.client.Patch(ctx, target, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(fieldManager))
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("write the label %s of Shoot %s: %w", constants.LabelShootStatus, request, err)
	}
	return reconcile.Result{}, nil
}
