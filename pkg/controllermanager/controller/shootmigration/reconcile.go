package shootmigration

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
)

// reconciler maintains the constraint.
type reconciler struct {
	client client.Client
	clock  clock.PassiveClock
}

// Reconcile writes the constraint of a Shoot if it has changed.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	move := Move{Shoot: &corev1beta1.Shoot{}}
	if err := r.client.Get(ctx, request.NamespacedName, move.Shoot); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if source, destination, is := moves(move.Shoot); is {
		var err error
		if move.ManagedSeed, err = r.managedSeedOf(ctx, request.NamespacedName); err != nil {
			return reconcile.Result{}, err
		}
		if move.Source, err = r.seed(ctx, source); err != nil {
			return reconcile.Result{}, err
		}
		if move.Destination, err = r.seed(ctx, destination); err != nil {
			return reconcile.Result{}, err
		}
	}
	constraint, remove := move.Decide(r.clock.Now())
	switch before := corev1beta1.FindCondition(move.Shoot.Status.Constraints, corev1beta1.ShootReadyForMigration); {
	case remove:
		return reconcile.Result{}, r.write(ctx, move.Shoot, map[string]any{"$patch": "delete", "type": corev1beta1.ShootReadyForMigration})
	case constraint == nil || before != nil && equality.Semantic.DeepEqual(*before, *constraint):
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, r.write(ctx, move.Shoot, constraint)
}

// seed returns a Seed, nil if it does not exist.
func (r *reconciler) seed(ctx context.Context, name string) (*corev1beta1.Seed, error) {
	seed := &corev1beta1.Seed{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: name}, seed); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil, nil //nolint:nilnil // the decision says so
		}
		return nil, fmt.Errorf("read Seed %s: %w", name, err)
	}
	return seed, nil
}

// managedSeedOf returns the name of the ManagedSeed that makes a Shoot a Seed, empty for none.
func (r *reconciler) managedSeedOf(ctx context.Context, shoot types.NamespacedName) (string, error) {
	var list seedmanagementv1alpha1.ManagedSeedList
	if err := r.client.List(ctx, &list, client.InNamespace(shoot.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("list the ManagedSeeds in namespace %s: %w", shoot.Namespace, err)
	}
	for i := range list.Items {
		if named := list.Items[i].Spec.Shoot; named != nil && named.Name == shoot.Name {
			return list.Items[i].Name, nil
		}
	}
	return "", nil
}

// write changes only this constraint, and only if the Shoot has not changed: it may be bound to another Seed meanwhile.
func (r *reconciler) write(ctx context.Context, shoot *corev1beta1.Shoot, change any) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": shoot.UID, "resourceVersion": shoot.ResourceVersion},
		"status":   map[string]any{"constraints": []any{change}},
	})
	if err != nil {
		return fmt.Errorf("encode the constraint of Shoot %s/%s: %w", shoot.Namespace, shoot.Name, err)
	}
	target := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: shoot.Namespace, Name: shoot.Name}}
	err = r.client.Status().Patch(ctx, target, client.RawPatch(types.StrategicMergePatchType, patch), controller.FieldManager)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write the constraint %s of Shoot %s/%s: %w", corev1beta1.ShootReadyForMigration, shoot.Namespace, shoot.Name, err)
	}
	return nil
}
