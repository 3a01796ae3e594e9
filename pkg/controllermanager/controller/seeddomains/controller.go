package seeddomains

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/rewatch"
)

// Controller returns the controller that copies default domains to the namespaces of Seeds.
func Controller() controller.Controller {
	return controller.Controller{
		Name: "seed-default-domains", Add: add,
		Rights: []controller.Right{
			controller.May("copies of default domains", "", []string{"secrets"}, "create", "get", "list", "watch", "update", "delete"),
			controller.May("namespaces of Seeds", "", []string{"namespaces"}, "list", "watch"),
		},
	}
}

// add adds the controller to the manager of the garden.
func add(_ context.Context, mgr manager.Manager, deps controller.Deps) error {
	// A separate cache, because that of the manager has only the metadata of Secrets.
	domains, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), NewInformer: rewatch.NewInformer,
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}: {Label: labels.SelectorFromSet(labels.Set{constants.LabelGardenRole: constants.RoleDefaultDomain})},
		},
	})
	if err != nil {
		return fmt.Errorf("make a cache of the default domains: %w", err)
	}
	r := &reconciler{domains: domains, namespaces: mgr.GetCache(), garden: deps.Client}
	built, err := controller.Build(mgr, "seed-default-domains", r, nil)
	if err != nil {
		return err
	}
	isOfSeed := predicate.NewPredicateFuncs(func(object client.Object) bool { return ofSeed(object.GetName()) })
	return errors.Join(
		mgr.Add(domains),
		built.Watch(source.Kind[client.Object](domains, &corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.affected), predicate.ResourceVersionChangedPredicate{})),
		built.Watch(source.Kind[client.Object](mgr.GetCache(), controller.MetadataOf("Namespace"), &handler.EnqueueRequestForObject{}, isOfSeed)),
	)
}

func ofSeed(namespace string) bool {
	return strings.HasPrefix(namespace, constants.PrefixSeedNamespace)
}

// reconciler keeps the copies in the namespaces of Seeds.
type reconciler struct {
	// domains is a cache of Secrets with default domains, namespaces one of the metadata of namespaces. garden writes.
	domains, namespaces client.Reader
	garden              client.Client
}

// affected returns requests for the namespaces in which a Secret is needed: all of Seeds, or that of a copy.
func (r *reconciler) affected(ctx context.Context, object client.Object) []reconcile.Request {
	if ofSeed(object.GetNamespace()) {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: object.GetNamespace()}}}
	}
	if object.GetNamespace() != constants.GardenNamespace {
		return nil
	}
	namespaces := metav1.PartialObjectMetadataList{}
	namespaces.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	if err := r.namespaces.List(ctx, &namespaces); err != nil {
		return nil // the process ends, or the cache has not synced and its watch reports all namespaces once it has
	}
	var found []reconcile.Request
	for _, namespace := range namespaces.Items {
		if ofSeed(namespace.Name) {
			found = append(found, reconcile.Request{NamespacedName: types.NamespacedName{Name: namespace.Name}})
		}
	}
	return found
}

// Reconcile writes and deletes the copies in the namespace of a Seed. It reads from caches.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	namespace := controller.MetadataOf("Namespace")
	if err := r.namespaces.Get(ctx, client.ObjectKey{Name: request.Name}, namespace); err != nil || namespace.DeletionTimestamp != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	var originals, copies corev1.SecretList
	if err := errors.Join(
		r.domains.List(ctx, &originals, client.InNamespace(constants.GardenNamespace)),
		r.domains.List(ctx, &copies, client.InNamespace(request.Name)),
	); err != nil {
		return reconcile.Result{}, fmt.Errorf("read the default domains: %w", err)
	}
	needed := decide(request.Name, originals.Items, copies.Items)
	var errs []error
	for i := range needed.create {
		errs = append(errs, describe(&needed.create[i], r.garden.Create(ctx, &needed.create[i], controller.FieldManager)))
	}
	for i := range needed.update {
		errs = append(errs, describe(&needed.update[i], r.garden.Update(ctx, &needed.update[i], controller.FieldManager)))
	}
	for i := range needed.remove {
		uid := needed.remove[i].UID
		err := r.garden.Delete(ctx, &needed.remove[i], client.Preconditions{UID: &uid})
		errs = append(errs, describe(&needed.remove[i], client.IgnoreNotFound(err)))
	}
	return reconcile.Result{}, errors.Join(errs...)
}

func describe(secret *corev1.Secret, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("copy the default domain in Secret %s to namespace %s: %w", secret.Name, secret.Namespace, err)
}
