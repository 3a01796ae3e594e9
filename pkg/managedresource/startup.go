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

// listPage is how many ManagedResources are listed at a time.
const listPage = 500

// start is what has to be known before the first reconcile.
type start struct {
	mu sync.Mutex
	// done is set once it is known.
	done bool
	// awaited are the resourceVersions that the cache has to show; nil before they were looked up.
	awaited map[types.NamespacedName]string
}

// begin prepares for the first reconcile, and reports whether it may come. First the cache has to show every ManagedResource at least
// as it was when this process began to lead: an inventory that a former leader has enlarged since would be read without what it
// has applied, and that would be lost. Then every ManagedResource claims what its inventory holds.
func (r *Reconciler) begin(ctx context.Context) (bool, error) {
	r.start.mu.Lock()
	defer r.start.mu.Unlock()
	if r.start.done {
		return true, nil
	}
	if r.start.awaited == nil {
		versions, err := r.listVersions(ctx)
		if err != nil {
			return false, err
		}
		r.start.awaited = versions
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

// seedClaims lets every ManagedResource claim what its inventory holds, and ends the start.
func (r *Reconciler) seedClaims(all []resourcesv1alpha1.ManagedResource) {
	for i := range all {
		mr := &all[i]
		if resourcesv1alpha1.HasClass(mr, r.Options.Class) || slices.Contains(mr.Finalizers, resourcesv1alpha1.FinalizerOf(r.Options.Class)) {
			p := r.newPass(mr)
			p.claim(p.stored(p.resolveScopes(p.Objects.Mapping, nil)))
		}
	}
	r.start.done, r.start.awaited = true, nil
}

// isCurrent reports whether the cache shows all ManagedResources at least as the API server had them when it was first asked.
func (r *Reconciler) isCurrent(ctx context.Context, cached []resourcesv1alpha1.ManagedResource) (bool, error) {
	for i := range cached {
		name := client.ObjectKeyFromObject(&cached[i])
		if order, err := resourceversion.CompareResourceVersion(cached[i].ResourceVersion, r.start.awaited[name]); err != nil || order >= 0 {
			delete(r.start.awaited, name)
		}
	}
	for name := range r.start.awaited {
		missing, err := r.isMissing(ctx, name)
		if err != nil {
			return false, err
		}
		if missing {
			delete(r.start.awaited, name)
		}
	}
	return len(r.start.awaited) == 0, nil
}

// isMissing reports whether the cache will not show a ManagedResource: it was deleted meanwhile, or is in none of its namespaces.
func (r *Reconciler) isMissing(ctx context.Context, name types.NamespacedName) (bool, error) {
	cached := &resourcesv1alpha1.ManagedResource{}
	if err := r.Source.Get(ctx, name, cached); !apierrors.IsNotFound(err) {
		return err != nil, nil
	}
	err := r.Direct.Get(ctx, name, metadataOf(&resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}))
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for ManagedResource %s: %w", name, err)
	}
	return false, nil
}

// listVersions returns the resourceVersions of all ManagedResources, past the cache.
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
