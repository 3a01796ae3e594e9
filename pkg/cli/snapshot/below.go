package snapshot

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/target"
)

// maxDepth limits the depth of trees, in case of cyclic owner references.
const maxDepth = 8

// The kinds that Kubernetes' controllers create.
var (
	replicaSets    = appsv1.SchemeGroupVersion.WithKind("ReplicaSet")
	jobs           = batchv1.SchemeGroupVersion.WithKind("Job")
	endpointSlices = discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice")
	pods           = corev1.SchemeGroupVersion.WithKind("Pod")
)

// ownedBy returns the kinds that objects of a kind own, directly or indirectly. Controllers of custom resources
// mostly create
// workloads.
func ownedBy(gk schema.GroupKind) []schema.GroupVersionKind {
	switch gk {
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}:
		return []schema.GroupVersionKind{replicaSets, pods}
	case schema.GroupKind{Group: "apps", Kind: "StatefulSet"}, schema.GroupKind{Group: "apps", Kind: "DaemonSet"},
		schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}, schema.GroupKind{Group: "batch", Kind: "Job"},
		schema.GroupKind{Kind: "ReplicationController"}:
		return []schema.GroupVersionKind{pods}
	case schema.GroupKind{Group: "batch", Kind: "CronJob"}:
		return []schema.GroupVersionKind{jobs, pods}
	case schema.GroupKind{Kind: "Service"}:
		return []schema.GroupVersionKind{endpointSlices}
	}
	if clientgoscheme.Scheme.IsGroupRegistered(gk.Group) || gk.Group == "apiextensions.k8s.io" || gk.Group == "apiregistration.k8s.io" {
		return nil
	}
	kinds := []schema.GroupVersionKind{replicaSets, jobs, pods}
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		kinds = append(kinds, appsv1.SchemeGroupVersion.WithKind(kind))
	}
	return kinds
}

// Below reads the objects that the roots own and adds them as children. It lists only possible kinds, in the
// namespaces of the
// roots. It omits ReplicaSets of former revisions, which have no Pods, unless all is set.
func (r *Reader) Below(ctx context.Context, roots []*Object, all bool) {
	namespaces := map[schema.GroupVersionKind]map[string]bool{}
	for _, root := range roots {
		if root.Presence != live.Present || root.Namespace == "" {
			continue
		}
		for _, gvk := range ownedBy(root.GroupKind()) {
			if namespaces[gvk] == nil {
				namespaces[gvk] = map[string]bool{}
			}
			namespaces[gvk][root.Namespace] = true
		}
	}
	owned := map[types.UID][]*Object{}
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(inFlight)
	for gvk, in := range namespaces {
		for _, place := range r.placesFor(gvk, in) {
			group.Go(func() error {
				objects := r.listAll(ctx, place, in)
				mu.Lock()
				defer mu.Unlock()
				for _, object := range objects {
					if all || !isFormer(object) {
						for _, owner := range object.Meta.OwnerReferences {
							owned[owner.UID] = append(owned[owner.UID], object)
						}
					}
				}
				return nil
			})
		}
	}
	_ = group.Wait() // no function returns an error
	inventory := map[types.UID]bool{}
	for _, root := range roots {
		inventory[root.Meta.UID] = true
	}
	for _, root := range roots {
		if root.Presence == live.Present {
			adopt(root, owned, inventory, maxDepth)
		}
	}
}

// placesFor returns the namespaces in which to list a kind, or all namespaces at once if there are many.
func (r *Reader) placesFor(gvk schema.GroupVersionKind, namespaces map[string]bool) []place {
	if len(namespaces) >= everywhereFrom {
		return []place{{gvk, ""}}
	}
	var places []place
	for _, namespace := range slices.Sorted(maps.Keys(namespaces)) {
		places = append(places, place{gvk, namespace})
	}
	return places
}

// listAll lists a kind. If the user may not list it in all namespaces, listAll lists it in each of the given
// namespaces.
func (r *Reader) listAll(ctx context.Context, at place, namespaces map[string]bool) []*Object {
	objects, err := r.list(ctx, at, "")
	switch {
	case err == nil:
		return objects
	case apierrors.IsForbidden(err) && at.namespace == "":
		for namespace := range namespaces {
			objects = append(objects, r.listAll(ctx, place{at.GroupVersionKind, namespace}, nil)...)
		}
		return objects
	case apierrors.IsForbidden(err):
		r.addUnseen("%s%s", plural(at.Kind), inNamespace(at.namespace))
	case !errors.Is(err, target.ErrKindNotServed):
		r.addUnseen("%s%s (%v)", plural(at.Kind), inNamespace(at.namespace), err)
	}
	return nil
}

// isFormer reports whether an object is a ReplicaSet of a former revision.
func isFormer(object *Object) bool {
	set, is := object.Body.(*appsv1.ReplicaSet)
	return is && ptr.Deref(set.Spec.Replicas, 1) == 0 && set.Status.Replicas == 0
}

// adopt adds the owned objects of an object as its children. It skips objects of the inventory, which are shown on
// their own.
func adopt(parent *Object, owned map[types.UID][]*Object, inventory map[types.UID]bool, depth int) {
	if depth == 0 {
		return
	}
	for _, child := range owned[parent.Meta.UID] {
		if inventory[child.Meta.UID] {
			continue
		}
		copied := *child // an object with several owners becomes a child of each of them
		copied.Children = nil
		adopt(&copied, owned, inventory, depth-1)
		parent.Children = append(parent.Children, &copied)
	}
	slices.SortFunc(parent.Children, func(a, b *Object) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
}
