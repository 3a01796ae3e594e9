package managedresource

import (
	"context"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// listPage is the page size of lists of ManagedResources.
const listPage = 500

// startupState is the state of the preparations for the first reconcile.
type startupState struct {
	mu sync.Mutex
	// done is set when the preparations are complete.
	done bool
	// awaited are the resourceVersions that the cache has to reach. It is nil before they are listed.
	awaited map[types.NamespacedName]string
}

// warmUp prepares for the first reconcile, and reports whether it can start. The cache has to contain every
// ManagedResource in the version of the time at which this process became the leader, or a later one. Otherwise, an
// inventory that the former leader has extended could be read without the objects that it has applied, and these
// objects would be lost. Then every ManagedResource claims the objects in its inventory.
func (r *Reconciler) warmUp(ctx context.Context) (bool, error) {
	r.startup.mu.Lock()
	defer r.startup.mu.Unlock()
	if r.startup.done {
		return true, nil
	}
	if r.startup.awaited == nil {
		versions, err := r.listVersions(ctx)
		if err != nil {
			return false, err
		}
		r.startup.awaited = versions
	}
	list := &resourcesv1alpha1.ManagedResourceList{}
	if err := r.Source.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("list ManagedResources: %w", err)
	}
	if current, err := r.isCurrent(ctx, list.Items); err != nil || !current {
		return false, err
	}
	r.seedClaims(list.Items)
	return true, nil
}

// seedClaims claims the objects in the inventories of all ManagedResources, and completes the startup.
func (r *Reconciler) seedClaims(all []resourcesv1alpha1.ManagedResource) {
	for i := range all {
		mr := &all[i]
		if resourcesv1alpha1.HasClass(mr, r.Options.Class) || slices.Contains(mr.Finalizers, resourcesv1alpha1.FinalizerOf(r.Options.Class)) {
			p := r.newPass(mr)
			p.claim(p.stored(p.resolveScopes(p.Objects.Mapping, nil)))
		}
	}
	r.startup.done, r.startup.awaited = true, nil
}

// isCurrent reports whether the cache contains all ManagedResources in the version that the API server first returned,
// or a later one.
func (r *Reconciler) isCurrent(ctx context.Context, cached []resourcesv1alpha1.ManagedResource) (bool, error) {
	for i := range cached {
		name := client.ObjectKeyFromObject(&cached[i])
		if order, err := resourceversion.CompareResourceVersion(cached[i].ResourceVersion, r.startup.awaited[name]); err != nil || order >= 0 {
			delete(r.startup.awaited, name)
		}
	}
	for name := range r.startup.awaited {
		missing, err := r.isMissing(ctx, name)
		if err != nil {
			return false, err
		}
		if missing {
			delete(r.startup.awaited, name)
		}
	}
	return len(r.startup.awaited) == 0, nil
}

// isMissing reports whether the cache will never contain a ManagedResource, because it was deleted in the meantime or
// is not in the namespaces of the cache.
func (r *Reconciler) isMissing(ctx context.Context, name types.NamespacedName) (bool, error) {
	cached := &resourcesv1alpha1.ManagedResource{}
	if err := r.Source.Get(ctx, name, cached); !apierrors.IsNotFound(err) {
		return err != nil, nil
	}
	named := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	err := r.Direct.Get(ctx, name, metadataOf(named))
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the metadata of ManagedResource %s: %w", name, err)
	}
	return false, nil
}

// listVersions returns the resourceVersions of all ManagedResources from the API server.
func (r *Reconciler) listVersions(ctx context.Context) (map[types.NamespacedName]string, error) {
	namespaces := r.Options.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	versions := map[types.NamespacedName]string{}
	for _, namespace := range namespaces {
		for list := (&metav1.PartialObjectMetadataList{}); ; {
			list.SetGroupVersionKind(resourcesv1alpha1.SchemeGroupVersion.WithKind("ManagedResourceList"))
			err := r.Direct.List(ctx, list, client.InNamespace(namespace), client.Limit(listPage), client.Continue(list.Continue))
			if err != nil {
				return nil, fmt.Errorf("list the metadata of ManagedResources: %w", err)
			}
			for _, item := range list.Items {
				versions[types.NamespacedName{Namespace: item.Namespace, Name: item.Name}] = item.ResourceVersion
			}
			if list.Continue == "" {
				break
			}
		}
	}
	return versions, nil
}
