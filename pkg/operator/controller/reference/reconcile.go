package reference

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	frame "github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

// protector protects the objects of a kind.
type protector struct {
	frame.Protector

	kind string
}

// Reconcile adds the finalizer to an object that others refer to, and releases one that nothing refers to.
func (p *protector) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object := watches.MetadataOf(p.kind)
	if err := p.Client.Get(ctx, request.NamespacedName, object); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	reference := Reference{p.kind, request.Name}
	users, err := usersOf(ctx, p.Client, reference)
	if err != nil {
		return reconcile.Result{}, err
	}
	if len(users) > 0 && object.DeletionTimestamp == nil {
		return reconcile.Result{}, p.Add(ctx, object, constants.FinalizerReferenceProtection)
	}
	return reconcile.Result{}, p.Release(ctx, object, constants.FinalizerReferenceProtection,
		func(ctx context.Context, reader client.Reader) ([]string, error) {
			return usersOf(ctx, reader, reference)
		})
}

// usersOf returns the Gardens and Extensions that use an object, as texts.
func usersOf(ctx context.Context, reader client.Reader, reference Reference) ([]string, error) {
	var users []string
	gardens, extensions := &operatorv1alpha1.GardenList{}, &operatorv1alpha1.ExtensionList{}
	if err := reader.List(ctx, gardens); err != nil {
		return nil, fmt.Errorf("list the Gardens that may refer to %s %s: %w", reference.Kind, reference.Name, err)
	}
	if err := reader.List(ctx, extensions); err != nil {
		return nil, fmt.Errorf("list the Extensions that may refer to %s %s: %w", reference.Kind, reference.Name, err)
	}
	for i := range gardens.Items {
		if one := &gardens.Items[i]; Uses(one) && slices.Contains(Of(one), reference) {
			users = append(users, "Garden "+one.Name)
		}
	}
	for i := range extensions.Items {
		if one := &extensions.Items[i]; Uses(one) && slices.Contains(Of(one), reference) {
			users = append(users, "Extension "+one.Name)
		}
	}
	return users, nil
}

// user adds the finalizer to the objects that refer to others, so that the operator releases those also if it did not run when they
// were deleted.
type user struct {
	frame.Protector

	empty func() client.Object
}

// Reconcile adds or removes the finalizer of a Garden or an Extension.
func (u *user) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object := u.empty()
	if err := u.Client.Get(ctx, request.NamespacedName, object); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	const finalizer = constants.FinalizerReferenceProtection
	has := controllerutil.ContainsFinalizer(object, finalizer)
	switch needs := Uses(object) && len(Of(object)) > 0; {
	case needs && !has && object.GetDeletionTimestamp() == nil:
		return reconcile.Result{}, u.Add(ctx, object, finalizer)
	case !needs && has:
		return reconcile.Result{}, u.Release(ctx, object, finalizer, func(context.Context, client.Reader) ([]string, error) { return nil, nil })
	}
	return reconcile.Result{}, nil
}
