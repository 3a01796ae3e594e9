package flow

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/manifestsecret"
)

// Content returns the objects of the last emitted revision of a bundle. A flow needs them to change a single field of a
// revision that it cannot compute any more. It returns an error if a Secret of the revision does not exist.
func Content(ctx context.Context, uncached client.Reader, mr *resourcesv1alpha1.ManagedResource) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, reference := range mr.Spec.SecretRefs {
		var secret corev1.Secret
		if err := uncached.Get(ctx, client.ObjectKey{Namespace: mr.Namespace, Name: reference.Name}, &secret); err != nil {
			return nil, fmt.Errorf("read the objects of ManagedResource %s: %w", keyOf(mr), err)
		}
		objects, err := manifestsecret.Read(&secret, maxBytes)
		if err != nil {
			return nil, fmt.Errorf("read the objects of ManagedResource %s: %w", keyOf(mr), err)
		}
		all = append(all, objects...)
	}
	return all, nil
}
