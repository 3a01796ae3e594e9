package shootstate

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/cachetransform"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

// state returns empty metadata of a ShootState, which has the same name as its Shoot. The ShootStates themselves are large, and secret.
func state() *metav1.PartialObjectMetadata {
	return watches.Metadata(corev1beta1.SchemeGroupVersion.WithKind("ShootState"))
}

// Controller returns the controller that keeps the ShootStates of Shoots that move.
func Controller() controller.Controller {
	return controller.Controller{
		Name: "shootstate-finalizer", Add: addController,
		Keeps: []controller.Keep{controller.Keeping(Keep)},
		Selects: []controller.Select{{Object: state(), Options: cache.ByObject{
			Transform: cachetransform.Of(func(object *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
				reduced := &metav1.PartialObjectMetadata{TypeMeta: object.TypeMeta, ObjectMeta: cachetransform.Meta(object)}
				reduced.Finalizers = object.Finalizers
				return reduced
			}),
		}}},
		Rights: []controller.Right{
			controller.May("last operations of Shoots", corev1beta1.GroupName, []string{"shoots"}, controller.Reads()...),
			controller.May("finalizers of ShootStates", corev1beta1.GroupName, []string{"shootstates"}, "get", "list", "watch", "patch"),
		},
	}
}

func addController(_ context.Context, mgr manager.Manager, deps controller.Deps) error {
	r := &reconciler{Protector: deps.Protector()}
	return controller.Start(mgr, "shootstate-finalizer", r, deps.Config.ShootState.ConcurrentSyncs,
		controller.On(state(), &handler.EnqueueRequestForObject{}, controller.ChangesFinalizers()),
		controller.On(&corev1beta1.Shoot{}, &handler.EnqueueRequestForObject{}, controller.Changes(func(before, after *corev1beta1.Shoot) bool {
			return Decide(before) != Decide(after)
		})))
}

// reconciler adds and releases the finalizers of ShootStates.
type reconciler struct{ controller.Protector }

// Reconcile adds or releases the finalizer of the ShootState of a Shoot.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object := state()
	if err := r.Client.Get(ctx, request.NamespacedName, object); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	shoot, err := read(ctx, r.Client, request)
	if err != nil {
		return reconcile.Result{}, err
	}
	switch Decide(shoot) {
	case add:
		if object.DeletionTimestamp == nil { // the API server refuses new finalizers in a deletion
			err = r.Add(ctx, object, constants.FinalizerShootState)
		}
	case release:
		err = r.Release(ctx, object, constants.FinalizerShootState, func(ctx context.Context, reader client.Reader) ([]string, error) {
			shoot, err := read(ctx, reader, request)
			if err != nil || Decide(shoot) == release {
				return nil, err
			}
			return []string{"Shoot " + request.String()}, nil
		})
	case leave:
	}
	return reconcile.Result{}, err
}

// read reads a Shoot; nil if it does not exist.
func read(ctx context.Context, reader client.Reader, request reconcile.Request) (*corev1beta1.Shoot, error) {
	shoot := &corev1beta1.Shoot{}
	switch err := reader.Get(ctx, request.NamespacedName, shoot); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read Shoot %s, whose ShootState exists: %w", request, err)
	}
	return shoot, nil
}
