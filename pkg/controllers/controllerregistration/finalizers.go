package controllerregistration

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// Reasons of Events.
//
// +events:on=ControllerRegistration, ControllerDeployment, Secret or ConfigMap
const (
	eventReferenced = "ResourceReferenced" // Warning: it cannot be deleted yet, because others refer to it
)

// actionDelete is the action of these Events.
const actionDelete = "Delete"

// addFinalizer adds a finalizer to an object if it is missing.
func (c controllers) addFinalizer(ctx context.Context, object client.Object, finalizer string) error {
	return c.patchFinalizers(ctx, object, func() bool { return controllerutil.AddFinalizer(object, finalizer) })
}

// removeFinalizer removes a finalizer from an object if it exists.
func (c controllers) removeFinalizer(ctx context.Context, object client.Object, finalizer string) error {
	return c.patchFinalizers(ctx, object, func() bool { return controllerutil.RemoveFinalizer(object, finalizer) })
}

// patchFinalizers patches an object if change changed its finalizers.
func (c controllers) patchFinalizers(ctx context.Context, object client.Object, change func() bool) error {
	before, ok := object.DeepCopyObject().(client.Object)
	if !ok || !change() {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := client.IgnoreNotFound(c.cached.Patch(ctx, object, patch, client.FieldOwner(fieldManager))); err != nil {
		return fmt.Errorf("change the finalizers of %s: %w", client.ObjectKeyFromObject(object), err)
	}
	return nil
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
		return reconcile.Result{}, p.addFinalizer(ctx, object, p.finalizer)
	}
	if !controllerutil.ContainsFinalizer(object, p.finalizer) {
		return reconcile.Result{}, nil
	}
	for _, reader := range []client.Reader{p.cached, p.uncached} {
		users, err := p.users(ctx, reader, object.GetName())
		if err != nil {
			return reconcile.Result{}, err
		}
		if len(users) > 0 {
			slices.Sort(users)
			p.recorder.Eventf(object, nil, corev1.EventTypeWarning, eventReferenced, actionDelete,
				"It is deleted once nothing refers to it: %s", strings.Join(users[:min(len(users), mostUsers)], ", "))
			return reconcile.Result{}, nil // the watch reports their deletion
		}
	}
	return reconcile.Result{}, p.removeFinalizer(ctx, object, p.finalizer)
}

// mostUsers limits the number of objects that an Event names.
const mostUsers = 10

// addRegistrations adds the controller that protects registrations with installations.
func (c controllers) addRegistrations(mgr manager.Manager, syncs int) error {
	toRegistration := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		if found, ok := object.(*corev1beta1.ControllerInstallation); ok {
			return requests(found.Spec.RegistrationRef.Name)
		}
		return nil
	})
	p := &protector{
		controllers: c, finalizer: constants.FinalizerControllerRegistration,
		object: func() client.Object { return &corev1beta1.ControllerRegistration{} }, users: installationsOf,
	}
	return add(mgr, "controllerregistration-finalizer", p, syncs,
		watch{&corev1beta1.ControllerRegistration{}, &handler.EnqueueRequestForObject{}, ofFinalizers},
		watch{&corev1beta1.ControllerInstallation{}, toRegistration, deletions})
}

// addDeployments adds the controller that protects deployments to which registrations refer.
func (c controllers) addDeployments(mgr manager.Manager, syncs int) error {
	toDeployments := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		registration, ok := object.(*corev1beta1.ControllerRegistration)
		if !ok {
			return nil
		}
		return requests(deploymentsOf(registration)...)
	})
	p := &protector{
		controllers: c, finalizer: constants.FinalizerControllerDeployment,
		object: func() client.Object { return &gardencorev1.ControllerDeployment{} }, users: registrationsOf,
	}
	return add(mgr, "controllerdeployment", p, syncs,
		watch{&gardencorev1.ControllerDeployment{}, &handler.EnqueueRequestForObject{}, ofFinalizers},
		watch{&corev1beta1.ControllerRegistration{}, toDeployments, changes(func(before, after *corev1beta1.ControllerRegistration) bool {
			return !slices.Equal(deploymentsOf(before), deploymentsOf(after))
		})})
}

// ofFinalizers passes creations, starts of deletions, and changes of finalizers.
var ofFinalizers = changes(func(before, after client.Object) bool {
	return !slices.Equal(before.GetFinalizers(), after.GetFinalizers())
})

// deletions passes deletions.
var deletions = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(event.UpdateEvent) bool { return false },
}

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
