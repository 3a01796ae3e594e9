// Package target accesses objects of any kind in the target cluster by their metadata. Other content, such as the data
// of a Secret, is not requested from the API server unless a caller uses the clients for whole objects.
package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/trellis-k8s/trellis/pkg/object"
)

// Objects accesses the objects of one cluster. It is safe for concurrent use.
type Objects struct {
	*kinds

	config *rest.Config
	// http has no timeout, because of watches.
	http     *http.Client
	metadata metadata.Interface
	dynamic  dynamic.Interface
	rest     rest.Interface
	core     corev1client.CoreV1Interface
	apps     appsv1client.AppsV1Interface
}

// NewObjects returns an Objects for the cluster of config.
func NewObjects(config *rest.Config, httpClient *http.Client) (*Objects, error) {
	// Discovery does not accept a context, so it needs a client with a timeout.
	bounded := *httpClient
	bounded.Timeout = discoveryTimeout
	kinds, err := newKinds(config, &bounded)
	if err != nil {
		return nil, err
	}
	return newObjects(kinds, config, httpClient)
}

func newObjects(kinds *kinds, config *rest.Config, httpClient *http.Client) (*Objects, error) {
	metadataClient, err := metadata.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("create a metadata client for the target cluster: %w", err)
	}
	dynamicClient, err := dynamic.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("create a dynamic client for the target cluster: %w", err)
	}
	restClient, err := rest.UnversionedRESTClientForConfigAndClient(metadata.ConfigFor(config), httpClient)
	if err != nil {
		return nil, fmt.Errorf("create a client for the target cluster: %w", err)
	}
	coreClient, err := corev1client.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("create a client for the target cluster: %w", err)
	}
	appsClient, err := appsv1client.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("create a client for the target cluster: %w", err)
	}
	return &Objects{
		kinds: kinds, config: config, http: httpClient, metadata: metadataClient, dynamic: dynamicClient,
		rest: restClient, core: coreClient, apps: appsClient,
	}, nil
}

// DynamicClient returns the client for whole objects.
func (o *Objects) DynamicClient() dynamic.Interface { return o.dynamic }

// MetadataClient returns the client for the metadata of objects.
func (o *Objects) MetadataClient() metadata.Interface { return o.metadata }

// CoreClient returns the client for the kinds of the core group.
func (o *Objects) CoreClient() corev1client.CoreV1Interface { return o.core }

// As returns an Objects that impersonates a ServiceAccount of the cluster. It sends no request, and is too cheap to be
// worth caching: connections and discovered kinds are shared. All ServiceAccounts also share one limit of requests per
// second.
func (o *Objects) As(serviceAccount types.NamespacedName) (*Objects, error) {
	config := rest.CopyConfig(o.config)
	config.RateLimiter = o.rest.GetRateLimiter()
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + serviceAccount.Namespace + ":" + serviceAccount.Name,
		// The groups of every ServiceAccount.
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + serviceAccount.Namespace, "system:authenticated"},
	}
	impersonating := *o.http
	impersonating.Transport = transport.NewImpersonatingRoundTripper(transport.ImpersonationConfig{
		UserName: config.Impersonate.UserName, Groups: config.Impersonate.Groups,
	}, cmp.Or(o.http.Transport, http.DefaultTransport))
	objects, err := newObjects(o.kinds, config, &impersonating)
	if err != nil {
		return nil, fmt.Errorf("connect to the target cluster as ServiceAccount %s: %w", serviceAccount, err)
	}
	return objects, nil
}

// CheckServiceAccount returns an error if a ServiceAccount does not exist.
func (o *Objects) CheckServiceAccount(ctx context.Context, serviceAccount types.NamespacedName) error {
	_, err := o.core.ServiceAccounts(serviceAccount.Namespace).Get(ctx, serviceAccount.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read ServiceAccount %s of the target cluster: %w", serviceAccount, err)
	}
	return nil
}

// Resource returns the client for an object in exactly its version. Errors are those of Mapping.
func (o *Objects) Resource(ref object.Ref) (metadata.ResourceInterface, error) {
	if err := ref.Validate(); err != nil {
		return nil, err
	}
	mapping, err := o.Mapping(ref.GroupVersionKind)
	if err != nil {
		return nil, err
	}
	return o.resource(mapping, ref.Namespace), nil
}

// ResourceInAnyVersion returns the client for an object, in another version if its own is not served. Errors are those
// of Mapping.
func (o *Objects) ResourceInAnyVersion(ref object.Ref) (metadata.ResourceInterface, error) {
	if err := ref.Validate(); err != nil {
		return nil, err
	}
	mapping, err := o.mappingInAnyVersion(ref.GroupVersionKind)
	if err != nil {
		return nil, err
	}
	return o.resource(mapping, ref.Namespace), nil
}

// Defined returns the client for all objects of the kind that the named CustomResourceDefinition defines.
func (o *Objects) Defined(definition string) (metadata.ResourceInterface, error) {
	plural, group, _ := strings.Cut(definition, ".") // Kubernetes requires the name <plural>.<group>
	resource, err := o.currentMapper().ResourceFor(schema.GroupVersionResource{Group: group, Resource: plural})
	if err != nil {
		return nil, fmt.Errorf("discover the kind of CustomResourceDefinition %s: %w", definition, err)
	}
	return o.metadata.Resource(resource), nil
}

func (o *Objects) resource(mapping *meta.RESTMapping, namespace string) metadata.ResourceInterface {
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return o.metadata.Resource(mapping.Resource)
	}
	return o.metadata.Resource(mapping.Resource).Namespace(namespace)
}

// FinalizeNamespace removes the finalizers of the objects that are being deleted in a Namespace, and those in the spec
// of the Namespace, for which the finalize subresource is required. If the finalizers of some objects cannot be
// removed, those of the Namespace are still removed.
func (o *Objects) FinalizeNamespace(ctx context.Context, name string) error {
	contentErr := o.finalizeContent(ctx, name)
	namespace, err := o.core.Namespaces().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	namespace.Spec.Finalizers = nil
	_, err = o.core.Namespaces().Finalize(ctx, namespace, metav1.UpdateOptions{})
	return errors.Join(contentErr, err)
}
