package garbagecollector

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-k8s/trellis/pkg/references"
)

// pageSize is the number of objects that are read per page.
const pageSize = 500

// listedKind is a kind whose annotations are references.
type listedKind struct {
	schema.GroupVersionResource
	name string
	// optional is set for kinds that a cluster may not have.
	optional bool
}

// candidateResources are the resources of candidates.
var candidateResources = map[string]schema.GroupVersionResource{
	references.KindConfigMap: {Version: "v1", Resource: "configmaps"},
	references.KindSecret:    {Version: "v1", Resource: "secrets"},
}

// referrers are the kinds whose annotations are references, as in gardener-resource-manager. Each kind comes before the
// kinds that its objects create. If a reference is passed on to a child and removed from its parent during the listing,
// it is found at least once.
var referrers = []listedKind{
	{
		schema.GroupVersionResource{Group: "resources.gardener.cloud", Version: "v1alpha1", Resource: "managedresources"},
		"ManagedResource", true,
	},
	{schema.GroupVersionResource{Group: "monitoring.coreos.com", Version: "v1", Resource: "prometheuses"}, "Prometheus", true},
	{schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, "Deployment", false},
	{schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}, "StatefulSet", false},
	{schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}, "DaemonSet", false},
	{schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "cronjobs"}, "CronJob", false},
	{schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}, "Job", false},
	{schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "Pod", false},
}

// candidates lists the ConfigMaps and Secrets that have the label.
func (c *Collector) candidates(ctx context.Context) ([]candidate, error) {
	found := map[key]candidate{}
	for name, resource := range candidateResources {
		err := c.list(ctx, resource, references.LabelKeyGarbageCollectable+"="+references.LabelValueGarbageCollectable,
			func(object *metav1.PartialObjectMetadata) {
				id := key{namespace: object.Namespace, Reference: references.Reference{Kind: name, Name: object.Name}}
				found[id] = candidate{
					key: id, uid: object.UID, resourceVersion: object.ResourceVersion, written: lastWrite(object),
					deleting: object.DeletionTimestamp != nil,
				}
			})
		if err != nil {
			return nil, fmt.Errorf("list %ss of the target cluster: %w", kindNames[name], err)
		}
	}
	result := make([]candidate, 0, len(found))
	for _, one := range found {
		result = append(result, one)
	}
	return result, nil
}

// lastWrite returns when an object was last changed, as far as its field managers show it.
func lastWrite(object *metav1.PartialObjectMetadata) time.Time {
	last := object.CreationTimestamp.Time
	for _, entry := range object.ManagedFields {
		if entry.Time != nil && entry.Time.After(last) {
			last = entry.Time.Time
		}
	}
	return last
}

// references lists all objects that may reference a candidate. The result is complete.
func (c *Collector) references(ctx context.Context) (used, error) {
	result := used{}
	for _, kind := range referrers {
		err := c.list(ctx, kind.GroupVersionResource, "", func(object *metav1.PartialObjectMetadata) {
			result.add(object.Namespace, object.Annotations)
		})
		if kind.optional && apierrors.IsNotFound(err) {
			err = c.confirmAbsence(ctx, kind, err)
		}
		if err != nil {
			return nil, fmt.Errorf("list objects of kind %s of the target cluster: %w", kind.name, err)
		}
	}
	return result, nil
}

// confirmAbsence returns nil if discovery confirms that the cluster does not have a kind, and so has no objects of it.
func (c *Collector) confirmAbsence(ctx context.Context, kind listedKind, notFound error) error {
	abolished, err := c.Kinds.Abolished(ctx, schema.GroupKind{Group: kind.Group, Kind: kind.name})
	switch {
	case err != nil:
		return errors.Join(notFound, err)
	case !abolished:
		return fmt.Errorf("the API server reports that %s does not exist, but lists the resource in its discovery: %w", kind.Resource, notFound)
	}
	return nil
}

// list visits the metadata of all objects of a resource in the configured namespaces. An object may be visited twice.
func (c *Collector) list(
	ctx context.Context, resource schema.GroupVersionResource, selector string, visit func(*metav1.PartialObjectMetadata),
) error {
	return listWith(ctx, c.Options.Namespaces, selector, func(ctx context.Context, namespace string, options metav1.ListOptions) (string, error) {
		page, err := c.listPage(ctx, resource, namespace, options)
		if err != nil {
			return "", err
		}
		for i := range page.Items {
			visit(&page.Items[i])
		}
		return page.Continue, nil
	})
}

// readPage reads one page of a list and returns the token of the next page; empty after the last one.
type readPage func(ctx context.Context, namespace string, options metav1.ListOptions) (next string, err error)

// listWith reads all pages in the namespaces, or in all if there are none. An object may be on two of them.
func listWith(ctx context.Context, namespaces []string, selector string, read readPage) error {
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		options := metav1.ListOptions{LabelSelector: selector, Limit: pageSize}
		err := listPages(ctx, namespace, options, read)
		if apierrors.IsResourceExpired(err) {
			// The pages took longer than the API server keeps that state. An unpaged list cannot expire.
			options.Limit = 0
			err = listPages(ctx, namespace, options, read)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// listPages reads from etcd, not from the cache of the API server, because no resourceVersion is set. All pages show
// the same state.
func listPages(ctx context.Context, namespace string, options metav1.ListOptions, read readPage) error {
	for {
		next, err := read(ctx, namespace, options)
		if err != nil {
			return err
		}
		if options.Continue = next; next == "" {
			return nil
		}
	}
}

func (c *Collector) listPage(ctx context.Context, resource schema.GroupVersionResource, namespace string, options metav1.ListOptions,
) (*metav1.PartialObjectMetadataList, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	page, err := c.Metadata.Resource(resource).Namespace(namespace).List(ctx, options)
	if err != nil {
		return nil, err
	}
	if page.ResourceVersion == "" {
		// A response that is not from an API server must not count as an empty list.
		return nil, errors.New("the response is not a list: it has no resourceVersion")
	}
	return page, nil
}
