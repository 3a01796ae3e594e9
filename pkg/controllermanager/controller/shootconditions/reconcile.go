package shootconditions

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
)

// reconciler writes conditions of Shoots.
type reconciler struct {
	client client.Client
}

// Reconcile makes a Shoot show the conditions of the Seed that it has become.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	seed, err := r.seedOf(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	shoot := &corev1beta1.Shoot{}
	if err := r.client.Get(ctx, request.NamespacedName, shoot); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	set, remove := Decide(shoot, seed)
	if len(set)+len(remove) == 0 {
		return reconcile.Result{}, nil
	}
	changes := make([]any, 0, len(set)+len(remove))
	for _, condition := range set {
		changes = append(changes, condition)
	}
	for _, kind := range remove {
		changes = append(changes, map[string]any{"$patch": "delete", "type": kind})
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": shoot.UID}, "status": map[string]any{"conditions": changes}})
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("encode the conditions of Shoot %s: %w", request, err)
	}
	target := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: shoot.Namespace, Name: shoot.Name}}
	err = r.client.Status().Patch(ctx, target, client.RawPatch(types.StrategicMergePatchType, patch), controller.FieldManager)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("write conditions of its Seed to Shoot %s: %w", request, err)
	}
	return reconcile.Result{}, nil
}

// seedOf returns the Seed that a ManagedSeed made of a Shoot, or nil. It has the name of the ManagedSeed.
func (r *reconciler) seedOf(ctx context.Context, shoot client.ObjectKey) (*corev1beta1.Seed, error) {
	var all seedmanagementv1alpha1.ManagedSeedList
	if err := r.client.List(ctx, &all, client.InNamespace(shoot.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list ManagedSeeds in namespace %s: %w", shoot.Namespace, err)
	}
	for i := range all.Items {
		if of := all.Items[i].Spec.Shoot; of == nil || of.Name != shoot.Name {
			continue
		}
		seed := &corev1beta1.Seed{}
		err := r.client.Get(ctx, client.ObjectKey{Name: all.Items[i].Name}, seed)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read Seed %s: %w", all.Items[i].Name, err)
		}
		if err == nil {
			return seed, nil
		}
	}
	return nil, nil //nolint:nilnil // most Shoots are not Seeds
}
