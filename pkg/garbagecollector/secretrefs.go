package garbagecollector

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-k8s/trellis/pkg/references"
)

// managedResources is the kind whose spec.secretRefs are references, also without annotations.
var managedResources = referrers[0]

// garbageAmong returns the candidates that nothing refers to. ManagedResources are read in full only if the annotations leave a Secret
// unused, which is rare: a client forgot them.
func (c *Collector) garbageAmong(ctx context.Context, candidates []candidate, annotated used) ([]candidate, error) {
	garbage := unused(candidates, annotated)
	if !slices.ContainsFunc(garbage, func(c candidate) bool { return c.Kind == references.KindSecret }) {
		return garbage, nil
	}
	named := used{}
	err := c.listWith(ctx, "", func(ctx context.Context, namespace string, options metav1.ListOptions) (string, error) {
		return c.secretRefsPage(ctx, namespace, options, named)
	})
	if apierrors.IsNotFound(err) {
		err = c.confirmAbsence(ctx, managedResources, err)
	}
	if err != nil {
		return nil, fmt.Errorf("list spec.secretRefs of ManagedResources of the target cluster: %w", err)
	}
	return unused(garbage, named), nil
}

// secretRefsPage adds what a page of ManagedResources names, and returns where the next page begins; empty after the last one.
func (c *Collector) secretRefsPage(ctx context.Context, namespace string, options metav1.ListOptions, named used) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	page, err := c.Dynamic.Resource(managedResources.GroupVersionResource).Namespace(namespace).List(ctx, options)
	if err != nil {
		return "", err
	}
	if page.GetResourceVersion() == "" {
		// An answer of something else than an API server must not be taken for an empty list.
		return "", errors.New("the response is not a list: it has no resourceVersion")
	}
	for i := range page.Items {
		named.addSecretRefs(&page.Items[i])
	}
	return page.GetContinue(), nil
}

// addSecretRefs takes in the Secrets that a ManagedResource names.
func (u used) addSecretRefs(mr *unstructured.Unstructured) {
	spec, _ := mr.Object["spec"].(map[string]any)
	items, _ := spec["secretRefs"].([]any)
	for _, item := range items {
		reference, _ := item.(map[string]any)
		if name, _ := reference["name"].(string); name != "" {
			u[key{namespace: mr.GetNamespace(), Reference: references.Reference{Kind: references.KindSecret, Name: name}}] = struct{}{}
		}
	}
}
