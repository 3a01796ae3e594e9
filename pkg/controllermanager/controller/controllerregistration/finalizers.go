package controllerregistration

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
	"github.com/trellis-k8s/trellis/pkg/finalizer"
)

// Reasons of Events.
//
// +events:on=ControllerRegistration, ControllerDeployment, Secret or ConfigMap
const (
	eventReferenced = "ResourceReferenced" // Warning: it cannot be deleted yet, because others refer to it
)

// actionDelete is the action of these Events.
const actionDelete = "Delete"

// finalizers returns the holder of the finalizers of all controllers.
func (c controllers) finalizers() finalizer.Holder {
	return finalizer.Holder{Client: c.cached, Uncached: c.uncached, Owner: controller.FieldManager}
}

// release removes a finalizer from an object that nothing uses. Otherwise an Event of the object names the users.
func (c controllers) release(ctx context.Context, object client.Object, name string, users finalizer.Users) error {
	left, err := c.finalizers().Release(ctx, object, name, users)
	if len(left) > 0 && object.GetDeletionTimestamp() != nil {
		c.recorder.Eventf(object, nil, corev1.EventTypeWarning, eventReferenced, actionDelete,
			"It is deleted once nothing refers to it: %s", strings.Join(left[:min(len(left), mostUsers)], ", "))
	}
	return err // the watches report the deletion of users
}

// protector protects objects from deletion while others refer to them.
type protector struct {
	controllers

	finalizer string
	// object returns an empty object of the kind. users describes the objects that refer to the object with the given name.
	object func() client.Object
	users  func(context.Context, client.Reader, string) ([]string, error)
}

// Reconcile adds the finalizer. It removes it from an object that is being deleted once nothing refers to it.
func (p *protector) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object := p.object()
	if err := p.cached.Get(ctx, request.NamespacedName, object); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if object.GetDeletionTimestamp() == nil {
		return reconcile.Result{}, p.finalizers().Add(ctx, object, p.finalizer)
	}
	return reconcile.Result{}, p.release(ctx, object, p.finalizer, func(ctx context.Context, reader client.Reader) ([]string, error) {
		return p.users(ctx, reader, object.GetName())
	})
}

// mostUsers limits the number of objects that an Event names.
const mostUsers = 10

// addRegistrations adds the controller that protects registrations with installations.
func (c controllers) addRegistrations(mgr manager.Manager, syncs *int) error {
	toRegistration := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		if found, ok := object.(*corev1beta1.ControllerInstallation); ok {
			return controller.Requests(found.Spec.RegistrationRef.Name)
		}
		return nil
	})
	p := &protector{
		controllers: c, finalizer: constants.FinalizerControllerRegistration,
		object: func() client.Object { return &corev1beta1.ControllerRegistration{} }, users: installationsOf,
	}
	return controller.Start(mgr, "controllerregistration-finalizer", p, syncs,
		controller.On(&corev1beta1.ControllerRegistration{}, &handler.EnqueueRequestForObject{}, ofFinalizers),
		controller.On(&corev1beta1.ControllerInstallation{}, toRegistration, controller.Deletions()))
}

// addDeployments adds the controller that protects deployments to which registrations refer.
func (c controllers) addDeployments(mgr manager.Manager, syncs *int) error {
	toDeployments := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		registration, ok := object.(*corev1beta1.ControllerRegistration)
		if !ok {
			return nil
		}
		return controller.Requests(deploymentsOf(registration)...)
	})
	p := &protector{
		controllers: c, finalizer: constants.FinalizerControllerDeployment,
		object: func() client.Object { return &gardencorev1.ControllerDeployment{} }, users: registrationsOf,
	}
	return controller.Start(mgr, "controllerdeployment", p, syncs,
		controller.On(&gardencorev1.ControllerDeployment{}, &handler.EnqueueRequestForObject{}, ofFinalizers),
		controller.On(&corev1beta1.ControllerRegistration{}, toDeployments, controller.Changes(func(before, after *corev1beta1.ControllerRegistration) bool {
			return !slices.Equal(deploymentsOf(before), deploymentsOf(after))
		})))
}

// ofFinalizers passes creations, starts of deletions, and changes of finalizers.
var ofFinalizers = controller.Changes(func(before, after client.Object) bool {
	return !slices.Equal(before.GetFinalizers(), after.GetFinalizers())
})

// deploymentsOf returns the names of the deployments of a registration.
func deploymentsOf(registration *corev1beta1.ControllerRegistration) []string {
	var names []string
	if registration.Spec.Deployment != nil {
		for _, reference := range registration.Spec.Deployment.DeploymentRefs {
			names = append(names, reference.Name)
		}
	}
	return names
}

// installationsOf returns the installations of a registration. The API server supports the field of the index as a selector.
func installationsOf(ctx context.Context, reader client.Reader, registration string) ([]string, error) {
	var list corev1beta1.ControllerInstallationList
	if err := reader.List(ctx, &list, client.MatchingFields{indexRegistration: registration}); err != nil {
		return nil, fmt.Errorf("list the ControllerInstallations of ControllerRegistration %s: %w", registration, err)
	}
	var names []string
	for _, item := range list.Items {
		names = append(names, "ControllerInstallation "+item.Name)
	}
	return names, nil
}

// registrationsOf returns the registrations that refer to a deployment.
func registrationsOf(ctx context.Context, reader client.Reader, deployment string) ([]string, error) {
	var list corev1beta1.ControllerRegistrationList
	if err := reader.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list the ControllerRegistrations: %w", err)
	}
	var names []string
	for i := range list.Items {
		if slices.Contains(deploymentsOf(&list.Items[i]), deployment) {
			names = append(names, "ControllerRegistration "+list.Items[i].Name)
		}
	}
	return names, nil
}
