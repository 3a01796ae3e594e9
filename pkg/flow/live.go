package flow

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/object"
)

// Live are the existing objects of the bundles of an owner. It is read only because it shares objects with the cache.
type Live struct {
	// ManagedResources are all that the flow has emitted for the owner, and others with the name of a bundle in the plan.
	ManagedResources map[Key]*resourcesv1alpha1.ManagedResource
	// Secrets are those that the flow has emitted for the owner and that are not being deleted.
	Secrets map[Key]bool
	// Uncached is set if everything was read from the API server.
	Uncached bool
}

// Observe reads the existing objects of the bundles of an owner. The reader may be a cache of ManagedResources and of
// the metadata of Secrets: see [IndexOwners].
func Observe(ctx context.Context, reader client.Reader, owner Owner, plan Plan) (Live, error) {
	return observe(ctx, reader, owner, plan, []string{metav1.NamespaceAll})
}

// ObserveUncached reads the existing objects of the bundles of an owner from the API server. Pass all namespaces of the owner's
// bundles: the API server iterates over all ManagedResources and Secrets in them.
func ObserveUncached(ctx context.Context, uncached client.Reader, owner Owner, plan Plan, namespaces ...string) (Live, error) {
	live, err := observe(ctx, uncached, owner, plan, namespaces)
	live.Uncached = err == nil
	return live, err
}

func observe(ctx context.Context, reader client.Reader, owner Owner, plan Plan, namespaces []string) (Live, error) {
	live := Live{
		ManagedResources: map[Key]*resourcesv1alpha1.ManagedResource{}, Secrets: map[Key]bool{},
	}
	for _, namespace := range namespaces {
		var list resourcesv1alpha1.ManagedResourceList
		options := append(ownedBy(reader, owner), client.InNamespace(namespace), client.UnsafeDisableDeepCopy)
		if err := reader.List(ctx, &list, options...); err != nil {
			return Live{}, fmt.Errorf("list the ManagedResources of %s %s: %w", owner.Flow, owner, err)
		}
		for i := range list.Items {
			live.ManagedResources[keyOf(&list.Items[i])] = &list.Items[i]
		}
	}
	for _, bundle := range plan.Bundles {
		if err := readInto(ctx, reader, live.ManagedResources, bundle.Key); err != nil {
			return Live{}, err
		}
	}
	for _, tombstone := range plan.Tombstones {
		if err := readInto(ctx, reader, live.ManagedResources, tombstone.Key); err != nil {
			return Live{}, err
		}
	}
	for _, namespace := range namespaces {
		secrets := metav1.PartialObjectMetadataList{}
		secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
		options := append(ownedBy(reader, owner), client.InNamespace(namespace), client.UnsafeDisableDeepCopy)
		if err := reader.List(ctx, &secrets, options...); err != nil {
			return Live{}, fmt.Errorf("list the Secrets of %s %s: %w", owner.Flow, owner, err)
		}
		for i := range secrets.Items {
			if secret := &secrets.Items[i]; secret.DeletionTimestamp == nil {
				live.Secrets[keyOf(secret)] = true
			}
		}
	}
	return live, nil
}

func readInto(ctx context.Context, reader client.Reader, known map[Key]*resourcesv1alpha1.ManagedResource, key Key) error {
	if known[key] != nil {
		return nil
	}
	mr := &resourcesv1alpha1.ManagedResource{}
	err := reader.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, mr, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read ManagedResource %s: %w", key, err)
	}
	known[key] = mr
	return nil
}

// owned returns the ManagedResources of the owner, sorted by key.
func (l Live) owned(owner Owner) []*resourcesv1alpha1.ManagedResource {
	var owned []*resourcesv1alpha1.ManagedResource
	for _, key := range slices.SortedFunc(maps.Keys(l.ManagedResources), Key.Compare) {
		if mr := l.ManagedResources[key]; owner.owns(mr.Labels) {
			owned = append(owned, mr)
		}
	}
	return owned
}

// missing returns the names of Secrets that a ManagedResource references but that do not exist.
func (l Live) missing(mr *resourcesv1alpha1.ManagedResource) []string {
	var names []string
	for _, reference := range mr.Spec.SecretRefs {
		if !l.Secrets[Key{Namespace: mr.Namespace, Name: reference.Name}] {
			names = append(names, reference.Name)
		}
	}
	return names
}

// digestOfNames is the second part of AnnotationDigest.
func digestOfNames(references []resourcesv1alpha1.LocalObjectReference) string {
	parts := make([][]byte, 0, len(references))
	for _, reference := range references {
		parts = append(parts, []byte(reference.Name))
	}
	return object.Digest(parts...)
}

// Choice returns a choice of an earlier revision of a bundle, so that a plan can keep it. It is unknown if the bundle
// does not exist, belongs to another owner, or has no choice of that name. The caller then holds the bundle, or uses
// [Choose] if the bundle cannot exist yet.
func (l Live) Choice(owner Owner, key Key, name string) (value string, known bool, err error) {
	mr := l.ManagedResources[key]
	if mr == nil || !owner.owns(mr.Labels) || mr.Annotations[AnnotationChoices] == "" {
		return "", false, nil
	}
	choices := map[string]string{}
	if err := json.Unmarshal([]byte(mr.Annotations[AnnotationChoices]), &choices); err != nil {
		return "", false, fmt.Errorf("annotation %s of ManagedResource %s: %w", AnnotationChoices, key, err)
	}
	value, known = choices[name]
	return value, known, nil
}
