package controllerregistration

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/references"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

// referenceProtector protects the objects of a kind to which deployments refer, because extensions cannot be installed or
// updated without them.
type referenceProtector struct {
	controllers

	kind string
}

// addReferences adds the controllers that protect Secrets and ConfigMaps.
func (c controllers) addReferences(mgr manager.Manager, syncs *int) error {
	for _, kind := range []string{references.Secret, references.ConfigMap} {
		p := &referenceProtector{controllers: c, kind: kind}
		named := handler.EnqueueRequestsFromMapFunc(p.named)
		err := controller.Start(mgr, "controllerdeployment-reference-"+strings.ToLower(kind), p, syncs,
			controller.On(watches.MetadataOf(kind), &handler.EnqueueRequestForObject{}, predicate.ResourceVersionChangedPredicate{}),
			controller.On(&gardencorev1.ControllerDeployment{}, named, changesReferences),
			controller.On(&corev1beta1.Seed{}, named, changesReferences),
			controller.On(&corev1beta1.Shoot{}, named, changesReferences))
		if err != nil {
			return err
		}
	}
	return nil
}

// changesReferences passes changes of the references of an object.
var changesReferences = controller.Changes(func(before, after client.Object) bool {
	return !slices.Equal(references.Of(before), references.Of(after))
})

// named returns requests for the objects to which an object refers.
func (p *referenceProtector) named(_ context.Context, object client.Object) []reconcile.Request {
	var found []reconcile.Request
	for _, ref := range references.Of(object) {
		if ref.Kind == p.kind {
			found = append(found, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: constants.GardenNamespace, Name: ref.Name}})
		}
	}
	return found
}

// Reconcile adds the finalizer to an object to which a deployment refers. It removes it if nothing refers to the object, and the
// object is being deleted, or is not observed any more because it lost its role. Until then, the finalizer does no harm, and
// another controller may have added it.
func (p *referenceProtector) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object, err := p.read(ctx, request.NamespacedName)
	if err != nil || object == nil {
		return reconcile.Result{}, err
	}
	observed := slices.Contains(observedRoles, object.Labels[constants.LabelGardenRole])
	if observed && object.GetDeletionTimestamp() == nil {
		users, err := references.Deployments(ctx, p.cached, p.kind, object)
		if err != nil || len(users) == 0 {
			return reconcile.Result{}, err
		}
		return reconcile.Result{}, p.protector().Add(ctx, object, constants.FinalizerReferenceProtection)
	}
	return reconcile.Result{}, p.protector().Release(ctx, object, constants.FinalizerReferenceProtection,
		func(ctx context.Context, reader client.Reader) ([]string, error) {
			return references.Users(ctx, reader, p.kind, object)
		})
}

// read returns the metadata of an object, or nil if it does not exist. Objects without their role are not in the cache.
func (p *referenceProtector) read(ctx context.Context, key types.NamespacedName) (*metav1.PartialObjectMetadata, error) {
	for _, reader := range []client.Reader{p.cached, p.uncached} {
		object := watches.MetadataOf(p.kind)
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
