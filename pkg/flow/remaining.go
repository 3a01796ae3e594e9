package flow

import (
	"context"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// Emitted returns the ManagedResources of an owner, sorted by key. The reader may be a cache: see [IndexOwners]. Plans
// use them for tombstones of bundles whose number depends on the declaration.
func Emitted(ctx context.Context, reader client.Reader, owner Owner) ([]Key, error) {
	var list resourcesv1alpha1.ManagedResourceList
	if err := reader.List(ctx, &list, append(ownedBy(reader, owner), client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, fmt.Errorf("list the ManagedResources of %s %s: %w", owner.Flow, owner, err)
	}
	keys := make([]Key, 0, len(list.Items))
	for i := range list.Items {
		keys = append(keys, keyOf(&list.Items[i]))
	}
	slices.SortFunc(keys, Key.Compare)
	return keys, nil
}

// EmittedFor returns the ManagedResources that a flow has emitted for the owner that declaration describes, sorted by
// key. If the declaration comes from a file and has no UID, the owner is identified by name.
func EmittedFor(ctx context.Context, reader client.Reader, flow string, declaration client.Object) ([]Key, error) {
	owner := Owner{Flow: flow, UID: declaration.GetUID(), Namespace: declaration.GetNamespace(), Name: declaration.GetName()}
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(resourcesv1alpha1.SchemeGroupVersion.WithKind("ManagedResourceList"))
	if err := reader.List(ctx, &list, client.MatchingLabels(owner.marks())); err != nil {
		return nil, fmt.Errorf("list the ManagedResources of %s %s: %w", owner.Flow, owner, err)
	}
	var keys []Key
	for i := range list.Items {
		if owner.UID != "" || list.Items[i].Annotations[AnnotationOwner] == owner.String() {
			keys = append(keys, keyOf(&list.Items[i]))
		}
	}
	slices.SortFunc(keys, Key.Compare)
	return keys, nil
}

// Remaining returns the existing ManagedResources of an owner, read from the API server. The finalizer of the owner is
// removed only if there are none, and a cache might not show recent writes. Pass the namespaces of the owner's bundles.
// Without them, the API server iterates over the ManagedResources of all owners.
func Remaining(ctx context.Context, uncached client.Reader, owner Owner, namespaces ...string) ([]Key, error) {
	if owner.UID == "" {
		return nil, fmt.Errorf("the owner %s has no UID", owner)
	}
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	keys := map[Key]bool{}
	for _, namespace := range namespaces {
		var list metav1.PartialObjectMetadataList
		list.SetGroupVersionKind(resourcesv1alpha1.SchemeGroupVersion.WithKind("ManagedResourceList"))
		if err := uncached.List(ctx, &list, owner.Labels(), client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("list the ManagedResources of %s %s: %w", owner.Flow, owner, err)
		}
		for i := range list.Items {
			keys[keyOf(&list.Items[i])] = true
		}
	}
	return slices.SortedFunc(maps.Keys(keys), Key.Compare), nil
}
