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

// managedResources is the kind whose spec.secretRefs are references even without annotations.
var managedResources = referrers[0]

// garbageAmong returns the unreferenced candidates. It reads the spec of ManagedResources only if the annotations leave
// a Secret unreferenced. This is rare: a client forgot the annotations.
func (c *Collector) garbageAmong(ctx context.Context, candidates []candidate, annotated used) ([]candidate, error) {
	garbage := unused(candidates, annotated)
	if !slices.ContainsFunc(garbage, func(c candidate) bool { return c.Kind == references.KindSecret }) {
		return garbage, nil
	}
	named, err := c.namedByManagedResources(ctx, c.Options.Namespaces)
	if err != nil {
		return nil, err
	}
	return unused(garbage, named), nil
}

// namedByManagedResources returns the references of the ManagedResources in the namespaces, or in all if there are none:
// those of spec.secretRefs and of annotations.
func (c *Collector) namedByManagedResources(ctx context.Context, namespaces []string) (used, error) {
	named := used{}
	err := listWith(ctx, namespaces, "", func(ctx context.Context, namespace string, options metav1.ListOptions) (string, error) {
		return c.secretRefsPage(ctx, namespace, options, named)
	})
	if apierrors.IsNotFound(err) {
		err = c.confirmAbsence(ctx, managedResources, err)
	}
	if err != nil {
		return nil, fmt.Errorf("list spec.secretRefs of ManagedResources of the target cluster: %w", err)
	}
	return named, nil
}

// secretRefsPage adds the references in a page of ManagedResources and returns the token of the next page; empty after
// the last one.
func (c *Collector) secretRefsPage(ctx context.Context, namespace string, options metav1.ListOptions, named used) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	page, err := c.Dynamic.Resource(managedResources.GroupVersionResource).Namespace(namespace).List(ctx, options)
	if err != nil {
		return "", err
	}
	if page.GetResourceVersion() == "" {
		// A response that is not from an API server must not count as an empty list.
		return "", errors.New("the response is not a list: it has no resourceVersion")
	}
	for i := range page.Items {
		named.add(page.Items[i].GetNamespace(), page.Items[i].GetAnnotations())
		named.addSecretRefs(&page.Items[i])
	}
	return page.GetContinue(), nil
}

// addSecretRefs adds the Secrets that a ManagedResource references.
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
