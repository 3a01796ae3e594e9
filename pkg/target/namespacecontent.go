package target

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
)

// contentPageSize is the page size of lists of the objects in a namespace.
const contentPageSize = 500

// finalizeContent removes the finalizers of all objects of any kind in a namespace that are being deleted. If one kind
// cannot be listed, the other kinds are still processed. Kinds for which listing or patching is forbidden are skipped.
// The error joins all failures.
func (o *Objects) finalizeContent(ctx context.Context, namespace string) error {
	lists, err := discovery.ServerPreferredNamespacedResources(o.discovery)
	errs := []error{err} // the lists of the other groups are still valid
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, resource := range list.APIResources {
			if !slices.Contains(resource.Verbs, "list") || !slices.Contains(resource.Verbs, "patch") {
				continue
			}
			client := o.metadata.Resource(gv.WithResource(resource.Name)).Namespace(namespace)
			if err := finalizeAll(ctx, client); err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
				errs = append(errs, fmt.Errorf("remove the finalizers of %s in Namespace %s: %w", resource.Name, namespace, err))
			}
		}
	}
	return errors.Join(errs...)
}

// finalizeAll removes the finalizers of the objects of a resource that are being deleted.
func finalizeAll(ctx context.Context, client metadata.ResourceInterface) error {
	options := metav1.ListOptions{Limit: contentPageSize}
	for {
		page, err := client.List(ctx, options)
		if err != nil {
			return err
		}
		for _, item := range page.Items {
			if item.DeletionTimestamp == nil || len(item.Finalizers) == 0 {
				continue
			}
			body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": item.UID, "finalizers": nil}})
			if err != nil {
				return err
			}
			_, err = client.Patch(ctx, item.Name, types.MergePatchType, body, metav1.PatchOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return nil
		}
	}
}
