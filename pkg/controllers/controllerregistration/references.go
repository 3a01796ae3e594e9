package controllerregistration

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

const (
	kindSecret    = "Secret"
	kindConfigMap = "ConfigMap"
)

// reference is a reference of a ControllerDeployment to an object in namespace garden. The object must have the role.
type reference struct{ kind, name, role string }

// referencesOf returns the references of a deployment to Secrets and ConfigMaps, for its chart and the chart's values.
func referencesOf(deployment *gardencorev1.ControllerDeployment) []reference {
	var found []reference
	if deployment.Helm != nil && deployment.Helm.OCIRepository != nil {
		if ref := deployment.Helm.OCIRepository.PullSecretRef; ref != nil {
			found = append(found, reference{kindSecret, ref.Name, constants.RoleHelmPullSecret})
		}
		if ref := deployment.Helm.OCIRepository.CABundleSecretRef; ref != nil {
			found = append(found, reference{kindSecret, ref.Name, constants.RoleOCICABundle})
		}
	}
	for _, resource := range deployment.Resources {
		found = append(found, reference{resource.ResourceRef.Kind, resource.ResourceRef.Name, constants.RoleResourceReference})
	}
	return found
}

// referenceProtector protects the objects of a kind to which deployments refer, because extensions cannot be installed or
// updated without them.
type referenceProtector struct {
	controllers

	kind string
}

// addReferences adds the controllers that protect Secrets and ConfigMaps.
func (c controllers) addReferences(mgr manager.Manager, syncs int) error {
	for _, kind := range []string{kindSecret, kindConfigMap} {
		p := &referenceProtector{controllers: c, kind: kind}
		err := add(mgr, "controllerdeployment-reference-"+strings.ToLower(kind), p, syncs,
			watch{metadataOf(kind), &handler.EnqueueRequestForObject{}, predicate.ResourceVersionChangedPredicate{}},
			watch{&gardencorev1.ControllerDeployment{}, handler.EnqueueRequestsFromMapFunc(p.named),
				changes(func(before, after *gardencorev1.ControllerDeployment) bool {
					return !slices.Equal(referencesOf(before), referencesOf(after))
				})})
		if err != nil {
			return err
		}
	}
	return nil
}

// named returns requests for the objects to which a deployment refers.
func (p *referenceProtector) named(_ context.Context, object client.Object) []reconcile.Request {
	deployment, ok := object.(*gardencorev1.ControllerDeployment)
	if !ok {
		return nil
	}
	var found []reconcile.Request
	for _, ref := range referencesOf(deployment) {
		if ref.kind == p.kind {
			found = append(found, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: constants.GardenNamespace, Name: ref.name}})
		}
	}
	return found
}

// Reconcile adds the finalizer to an object to which a deployment refers, and otherwise removes it.
func (p *referenceProtector) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object, err := p.read(ctx, request.NamespacedName)
	if err != nil || object == nil {
		return reconcile.Result{}, err
	}
	users, err := p.usersOf(ctx, object)
	if err != nil {
		return reconcile.Result{}, err
	}
	switch {
	case len(users) == 0:
		return reconcile.Result{}, p.removeFinalizer(ctx, object, constants.FinalizerReferenceProtection)
	case object.GetDeletionTimestamp() == nil:
		return reconcile.Result{}, p.addFinalizer(ctx, object, constants.FinalizerReferenceProtection)
	case controllerutil.ContainsFinalizer(object, constants.FinalizerReferenceProtection):
		p.recorder.Eventf(object, nil, corev1.EventTypeWarning, eventReferenced, actionDelete,
			"It is deleted once nothing refers to it: %s", strings.Join(users[:min(len(users), mostUsers)], ", "))
	}
	return reconcile.Result{}, nil
}

// read returns the metadata of an object, or nil if it does not exist. It reads objects without their role from the API
// server, so that the finalizer is removed.
func (p *referenceProtector) read(ctx context.Context, key types.NamespacedName) (*metav1.PartialObjectMetadata, error) {
	for _, reader := range []client.Reader{p.cached, p.uncached} {
		object := metadataOf(p.kind)
		err := reader.Get(ctx, key, object)
		if err == nil {
			return object, nil
		}
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read %s %s: %w", p.kind, key, err)
		}
	}
	return nil, nil
}

// usersOf returns the deployments that refer to an object and can use it, sorted.
func (p *referenceProtector) usersOf(ctx context.Context, object *metav1.PartialObjectMetadata) ([]string, error) {
	var list gardencorev1.ControllerDeploymentList
	if err := p.cached.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the ControllerDeployments: %w", err)
	}
	used := reference{p.kind, object.Name, object.Labels[constants.LabelGardenRole]}
	var names []string
	for i := range list.Items {
		if slices.Contains(referencesOf(&list.Items[i]), used) {
			names = append(names, "ControllerDeployment "+list.Items[i].Name)
		}
	}
	slices.Sort(names)
	return names, nil
}
