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

// reference is how a ControllerDeployment refers to an object of the namespace garden: the object needs the role to be used.
type reference struct{ kind, name, role string }

// referencesOf returns the Secrets and ConfigMaps that a deployment names: for its chart, and for the values of the chart.
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

// referenceProtector keeps the objects of a kind that deployments name: without them, extensions could not be installed or updated.
type referenceProtector struct {
	controllers

	kind string
}

// addReferences adds the controllers that keep Secrets and ConfigMaps.
func (c controllers) addReferences(mgr manager.Manager, syncs int) error {
	for _, kind := range []string{kindSecret, kindConfigMap} {
		p := &referenceProtector{controllers: c, kind: kind}
		err := add(mgr, "controllerdeployment-reference-"+strings.ToLower(kind), p, syncs,
			watch{metadataOf(kind), &handler.EnqueueRequestForObject{}, predicate.ResourceVersionChangedPredicate{}},
			watch{&gardencorev1.ControllerDeployment{}, handler.EnqueueRequestsFromMapFunc(p.named), changes(func(before, after *gardencorev1.ControllerDeployment) bool {
				return !slices.Equal(referencesOf(before), referencesOf(after))
			})})
		if err != nil {
			return err
		}
	}
	return nil
}

// named returns requests for the objects that a deployment names.
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

// Reconcile adds the finalizer to an object that is named, and removes it from one that is not.
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
			"It is deleted when nothing refers to it any more: %s", strings.Join(users[:min(len(users), mostUsers)], ", "))
	}
	return reconcile.Result{}, nil
}

// read returns the metadata of an object; nil if it does not exist. The cache does not have an object that has lost its role: it is released.
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

// usersOf returns the deployments that name an object and can use it, for people, sorted.
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
