package extensionclusterrole

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
)

// Reasons of Events.
//
// +events:on=ClusterRole
const (
	eventNoSelector = "InvalidSelector"   // Warning: the annotation with the selector of ServiceAccounts is missing or invalid, so the binding remains as it is
	eventTaken      = "BindingNotManaged" // Warning: a ClusterRoleBinding with the name of the ClusterRole exists that the controller-manager did not create
)

// action is the action of these Events.
const action = "Bind"

// reconciler maintains the bindings of ClusterRoles of extensions. cached contains these ClusterRoles, their bindings, and the metadata
// of ServiceAccounts.
type reconciler struct {
	cached   client.Reader
	garden   client.Client
	recorder events.EventRecorder
}

// Reconcile writes the binding of a ClusterRole if it differs, and deletes it if the ClusterRole has lost its label. The binding of a
// ClusterRole that is deleted is garbage, because it has an owner reference.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	role := &rbacv1.ClusterRole{}
	live := &rbacv1.ClusterRoleBinding{}
	errBinding := r.cached.Get(ctx, request.NamespacedName, live)
	if client.IgnoreNotFound(errBinding) != nil {
		return reconcile.Result{}, fmt.Errorf("read ClusterRoleBinding %s: %w", request.Name, errBinding)
	}
	bound := errBinding == nil
	if err := r.cached.Get(ctx, request.NamespacedName, role); err != nil {
		if !apierrors.IsNotFound(err) {
			return reconcile.Result{}, fmt.Errorf("read ClusterRole %s: %w", request.Name, err)
		}
		if bound {
			return reconcile.Result{}, r.remove(ctx, live)
		}
		return reconcile.Result{}, nil
	}
	if role.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	accounts := &metav1.PartialObjectMetadataList{}
	accounts.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceAccountList"))
	if err := r.cached.List(ctx, accounts, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("list the ServiceAccounts: %w", err)
	}
	wanted, err := Decide(role, accounts.Items)
	if err != nil {
		r.recorder.Eventf(role, nil, corev1.EventTypeWarning, eventNoSelector, action, "%s", err)
		return reconcile.Result{}, nil // the watch reports when it is corrected
	}
	return reconcile.Result{}, r.ensure(ctx, role, live, wanted, bound)
}

// ensure creates or updates a binding.
func (r *reconciler) ensure(ctx context.Context, role *rbacv1.ClusterRole, live, wanted *rbacv1.ClusterRoleBinding, bound bool) error {
	if !bound {
		err := r.garden.Create(ctx, wanted, controller.FieldManager)
		if apierrors.IsAlreadyExists(err) { // or the cache does not show it yet
			r.recorder.Eventf(role, nil, corev1.EventTypeWarning, eventTaken, action, "ClusterRoleBinding %s exists and is not managed by the controller-manager", wanted.Name)
		}
		if err != nil {
			return fmt.Errorf("create ClusterRoleBinding %s: %w", wanted.Name, err)
		}
		return nil
	}
	if same(live, wanted) {
		return nil
	}
	wanted.ResourceVersion = live.ResourceVersion
	if err := client.IgnoreNotFound(r.garden.Update(ctx, wanted, controller.FieldManager)); err != nil {
		return fmt.Errorf("update ClusterRoleBinding %s: %w", wanted.Name, err)
	}
	return nil
}

// remove deletes a binding that the controller has created.
func (r *reconciler) remove(ctx context.Context, binding *rbacv1.ClusterRoleBinding) error {
	if err := client.IgnoreNotFound(r.garden.Delete(ctx, binding, client.Preconditions{UID: &binding.UID})); err != nil {
		return fmt.Errorf("delete ClusterRoleBinding %s: %w", binding.Name, err)
	}
	return nil
}
