package shootstatuslabel

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// Controller returns the controller of the label with the health of Shoots.
func Controller() controller.Controller {
	return controller.Controller{
		Name: "shoot-statuslabel",
		Add: func(_ context.Context, mgr manager.Manager, deps controller.Deps) error {
			return controller.Start(mgr, "shoot-statuslabel", &reconciler{deps.Client}, deps.Config.ShootStatusLabel.ConcurrentSyncs,
				controller.Watch{Object: &corev1beta1.Shoot{}, Changed: changed()})
		},
		Keeps: []controller.Keep{controller.Keeping(func(kept, shoot *corev1beta1.Shoot) {
			if value, set := shoot.Labels[constants.LabelShootStatus]; set {
				metav1.SetMetaDataLabel(&kept.ObjectMeta, constants.LabelShootStatus, value)
			}
			keep(&kept.Status, shoot.Status)
		})},
		Rights: []controller.Right{
			controller.May("the label with the health of a Shoot", corev1beta1.GroupName, []string{"shoots"}, "get", "list", "watch", "patch"),
		},
	}
}

// keep copies the fields on which the label depends into the status of a cached Shoot.
func keep(into *corev1beta1.ShootStatus, status corev1beta1.ShootStatus) {
	if last := status.LastOperation; last != nil && into.LastOperation == nil {
		into.LastOperation = &corev1beta1.LastOperation{Type: last.Type, State: last.State}
	}
	if len(status.LastErrors) > 0 && len(into.LastErrors) == 0 {
		into.LastErrors = make([]corev1beta1.LastError, 1)
	}
	if len(into.Conditions) > 0 {
		return // another controller keeps them
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
			keep(&old, before.Status)
			keep(&changed, after.Status)
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
	err = r.client.Patch(ctx, target, client.RawPatch(types.MergePatchType, patch), controller.FieldManager)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("write the label %s of Shoot %s: %w", constants.LabelShootStatus, request, err)
	}
	return reconcile.Result{}, nil
}
