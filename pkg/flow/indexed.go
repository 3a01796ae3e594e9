package flow

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// indexOwner is the name of the cache index by flow and owner. Without it, each pass would iterate over the objects of
// all owners.
const indexOwner = "flow-owner"

// IndexedReader is a cache with an index of emitted objects by owner. It is created by [IndexOwners].
type IndexedReader struct {
	client.Reader
}

// IndexOwners adds the index to a cache. It must be called before the cache is started. The result is a reader for
// [Emitter].
func IndexOwners(ctx context.Context, of cache.Cache) (IndexedReader, error) {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	for _, object := range []client.Object{&resourcesv1alpha1.ManagedResource{}, secret} {
		err := of.IndexField(ctx, object, indexOwner, func(object client.Object) []string {
			labels := object.GetLabels()
			if labels[LabelFlow] == "" {
				return nil
			}
			return []string{indexValue(labels[LabelFlow], labels[LabelOwner])}
		})
		if err != nil {
			return IndexedReader{}, fmt.Errorf("add an index by owner to the cache: %w", err)
		}
	}
	return IndexedReader{of}, nil
}

func indexValue(flow, uid string) string { return flow + "/" + uid }

// ownedBy returns list options that select the objects that a flow has emitted for an owner.
func ownedBy(reader client.Reader, owner Owner) []client.ListOption {
	options := []client.ListOption{owner.Labels()}
	if _, indexed := reader.(IndexedReader); indexed {
		options = append(options, client.MatchingFields{indexOwner: indexValue(owner.Flow, string(owner.UID))})
	}
	return options
}
