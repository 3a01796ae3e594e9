package extension

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	finalizers "github.com/trellis-k8s/trellis/pkg/finalizer"
	"github.com/trellis-k8s/trellis/pkg/watches"
)

// AddSecretsToManager adds a controller that lets Secrets with credentials come back that someone has deleted: it removes the
// finalizers that objects of the kinds hold on them, so that the resource-manager creates them again, and then adds the finalizers
// again. It leaves a Secret alone that no resource-manager applies, whose namespace is being deleted, or that an object needs that is
// being deleted itself.
//
// A program adds it once. The process needs the permission to list and watch Secrets, to get Namespaces, and those of [AddToManager].
func AddSecretsToManager(mgr manager.Manager, kinds ...extensionsv1alpha1.Object) error {
	managed, err := labels.NewRequirement(resourcesv1alpha1.LabelManagedBy, selection.Exists, nil)
	if err != nil {
		return fmt.Errorf("select the Secrets of resource-managers: %w", err)
	}
	watched, err := watches.NewCache(mgr, "the Secrets of resource-managers", cache.Options{
		ByObject: map[client.Object]cache.ByObject{
			watches.MetadataOf("Secret"): {Label: labels.NewSelector().Add(*managed), Transform: reduceSecret},
		},
	})
	if err != nil {
		return err
	}
	if err := mgr.Add(watched); err != nil {
		return fmt.Errorf("add the cache of the Secrets of resource-managers: %w", err)
	}
	s := &secretsOf{
		watched: watched, client: mgr.GetClient(), uncached: mgr.GetAPIReader(), released: map[client.ObjectKey]bool{},
		finalizers: finalizers.Holder{Client: mgr.GetClient(), Uncached: mgr.GetAPIReader(), Owner: fieldManager},
	}
	for _, object := range kinds {
		kind, err := kindOf(object, "", mgr.GetScheme())
		if err != nil {
			return err
		}
		s.kinds = append(s.kinds, kind)
	}
	_, err = watches.Controller{Name: "secrets-of-extensions", Reconciler: s}.AddTo(mgr, watches.Self(watched, watches.MetadataOf("Secret")))
	return err
}

// secretsOf is the controller of Secrets that objects of extensions need.
type secretsOf struct {
	kinds []kind
	// watched contains the metadata of the Secrets that resource-managers apply. client writes, and uncached reads from the API server.
	watched    client.Reader
	client     client.Client
	uncached   client.Reader
	finalizers finalizers.Holder

	mu sync.Mutex
	// released are the Secrets that are expected to come back.
	released map[client.ObjectKey]bool
}

// Reconcile releases one Secret that is being deleted, or protects it again. It sends no requests for other Secrets.
func (s *secretsOf) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	secret := watches.MetadataOf("Secret")
	if err := s.watched.Get(ctx, request.NamespacedName, secret); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	s.mu.Lock()
	comesBack := s.released[request.NamespacedName]
	s.mu.Unlock()
	if secret.DeletionTimestamp == nil && !comesBack {
		return reconcile.Result{}, nil
	}
	if err := s.uncached.Get(ctx, request.NamespacedName, secret); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if secret.DeletionTimestamp == nil {
		return reconcile.Result{}, s.protect(ctx, secret)
	}
	return reconcile.Result{}, s.release(ctx, secret)
}

// release removes the finalizers of the kinds from a Secret that comes back.
func (s *secretsOf) release(ctx context.Context, secret *metav1.PartialObjectMetadata) error {
	namespace := watches.MetadataOf("Namespace")
	if err := s.uncached.Get(ctx, client.ObjectKey{Name: secret.Namespace}, namespace); err != nil {
		return fmt.Errorf("read whether namespace %s is being deleted: %w", secret.Namespace, client.IgnoreNotFound(err))
	}
	var errs []error
	for _, kind := range s.kinds {
		if !controllerutil.ContainsFinalizer(secret, kind.finalizer) {
			continue
		}
		users, err := s.users(ctx, kind, secret)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if !comesBack(namespace, users) {
			continue
		}
		s.mu.Lock()
		s.released[client.ObjectKeyFromObject(secret)] = true
		s.mu.Unlock()
		_, err = s.finalizers.Release(ctx, secret, kind.finalizer, func(context.Context, client.Reader) ([]string, error) { return nil, nil })
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// comesBack reports whether a deleted Secret of a resource-manager is created again: neither its namespace nor an object that needs it
// is being deleted.
func comesBack(namespace client.Object, users []extensionsv1alpha1.Object) bool {
	for _, user := range users {
		if user.GetDeletionTimestamp() != nil {
			return false
		}
	}
	return namespace.GetDeletionTimestamp() == nil
}

// protect adds the finalizer of each kind whose objects need a Secret.
func (s *secretsOf) protect(ctx context.Context, secret *metav1.PartialObjectMetadata) error {
	for _, kind := range s.kinds {
		users, err := s.users(ctx, kind, secret)
		if err != nil {
			return err
		}
		if len(users) == 0 {
			continue
		}
		if err := s.finalizers.Add(ctx, secret, kind.finalizer); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.released, client.ObjectKeyFromObject(secret))
	return nil
}

// users reads the objects of a kind that hold a Secret, from the API server.
func (s *secretsOf) users(ctx context.Context, kind kind, secret client.Object) ([]extensionsv1alpha1.Object, error) {
	list, err := kind.newList(s.client.Scheme())
	if err != nil {
		return nil, err
	}
	var in []client.ListOption
	if !kind.clusterScoped {
		in = append(in, client.InNamespace(secret.GetNamespace()))
	}
	if err := s.uncached.List(ctx, list, in...); err != nil {
		return nil, fmt.Errorf("list the objects that refer to Secret %s: %w", client.ObjectKeyFromObject(secret), err)
	}
	var users []extensionsv1alpha1.Object
	err = meta.EachListItem(list, func(item runtime.Object) error {
		user, is := item.(extensionsv1alpha1.Object)
		if !is || !controllerutil.ContainsFinalizer(user, kind.finalizer) {
			return nil
		}
		if ref := secretRef(user); ref != nil && ref.Namespace == secret.GetNamespace() && ref.Name == secret.GetName() {
			users = append(users, user)
		}
		return nil
	})
	return users, err
}

// reduceSecret keeps only what the controller reads from its cache.
func reduceSecret(object any) (any, error) {
	if secret, is := object.(*metav1.PartialObjectMetadata); is {
		secret.Labels, secret.Annotations, secret.OwnerReferences, secret.ManagedFields = nil, nil, nil, nil
	}
	return object, nil
}
