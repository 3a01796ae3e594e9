package console

import (
	"context"
	"fmt"
	"net/http"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

const (
	// requestTimeout limits how long a request waits for a response, unless --request-timeout is set.
	requestTimeout = 60 * time.Second
	// pageSize is the number of ManagedResources per list request, as in kubectl.
	pageSize = 500
)

// Source is the cluster with the ManagedResources.
type Source struct {
	// WithWatch reads and writes ManagedResources, Secrets, Events, Namespaces and ConfigMaps, and creates access
	// reviews. Its
	// watches have no timeout.
	client.WithWatch
	// Host is the address of the API server.
	Host string
	// Config and HTTPClient are those of the connection.
	Config     *rest.Config
	HTTPClient *http.Client
}

// Scheme returns a scheme with ManagedResources and the kinds of Kubernetes.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(resourcesv1alpha1.AddToScheme(scheme))
	return scheme
}

// Source returns the cluster with the ManagedResources.
func (c *Console) Source() (*Source, error) {
	if c.source != nil {
		return c.source, nil
	}
	config, err := c.clusters.Source()
	if err != nil {
		return nil, err
	}
	httpClient, err := newHTTPClient(config)
	if err != nil {
		return nil, err
	}
	withWatch, err := client.NewWithWatch(config, client.Options{Scheme: Scheme(), Mapper: sourceMapper(), HTTPClient: httpClient})
	if err != nil {
		return nil, fmt.Errorf("set up the connection to the cluster %s: %w", config.Host, err)
	}
	c.source = &Source{WithWatch: withWatch, Host: config.Host, Config: config, HTTPClient: httpClient}
	return c.source, nil
}

// newHTTPClient returns an HTTP client for a cluster. It limits how long a response may take to begin. It does not
// limit how
// long the response lasts, because watches last long.
func newHTTPClient(config *rest.Config) (*http.Client, error) {
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("set up the connection to the cluster %s: %w", config.Host, err)
	}
	if httpClient.Timeout == 0 {
		httpClient.Transport = &timeoutTransport{next: transportOf(httpClient)}
	}
	return httpClient, nil
}

func transportOf(httpClient *http.Client) http.RoundTripper {
	if httpClient.Transport == nil {
		return http.DefaultTransport
	}
	return httpClient.Transport
}

// timeoutTransport cancels requests whose response does not begin in time.
type timeoutTransport struct{ next http.RoundTripper }

// RoundTrip sends a request. It returns an error if the response does not begin within requestTimeout.
func (b *timeoutTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(request.Context())
	timer := time.AfterFunc(requestTimeout, func() {
		cancel(fmt.Errorf("no response within %s", requestTimeout))
	})
	defer timer.Stop()
	response, err := b.next.RoundTrip(request.WithContext(ctx))
	if err != nil && context.Cause(ctx) != nil && request.Context().Err() == nil {
		return nil, context.Cause(ctx)
	}
	return response, err //nolint:wrapcheck // clients expect the errors of the transport
}

// sourceMapper returns the kinds that the source cluster is used for, so that no discovery is needed.
func sourceMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"Secret", "Event", "ConfigMap"} {
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	mapper.Add(authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview"), meta.RESTScopeRoot)
	gv := resourcesv1alpha1.SchemeGroupVersion
	mapper.AddSpecific(gv.WithKind("ManagedResource"), gv.WithResource("managedresources"), gv.WithResource("managedresource"),
		meta.RESTScopeNamespace)
	return mapper
}

// ManagedResourceKind is the kind of ManagedResources.
func ManagedResourceKind() schema.GroupVersionKind {
	return resourcesv1alpha1.SchemeGroupVersion.WithKind("ManagedResource")
}

// ListManagedResources reads all ManagedResources that the options select, page by page, and reports the number read so far.
func (s *Source) ListManagedResources(ctx context.Context, progress func(int), options ...client.ListOption,
) ([]resourcesv1alpha1.ManagedResource, error) {
	var all []resourcesv1alpha1.ManagedResource
	continuation, limit := "", int64(pageSize)
	for {
		list := &resourcesv1alpha1.ManagedResourceList{}
		err := s.List(ctx, list, append(options, client.Limit(limit), client.Continue(continuation))...)
		if apierrors.IsResourceExpired(err) { // paging took too long: read all at once, which is consistent
			all, continuation, limit = nil, "", 0
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, list.Items...)
		progress(len(all))
		if continuation = list.Continue; continuation == "" {
			return all, nil
		}
	}
}

// GetManagedResource reads a ManagedResource.
func (s *Source) GetManagedResource(ctx context.Context, name types.NamespacedName) (*resourcesv1alpha1.ManagedResource, error) {
	mr := &resourcesv1alpha1.ManagedResource{}
	err := s.Get(ctx, name, mr)
	return mr, err
}

// GetManagedResourceSince reads a ManagedResource in the given resourceVersion or a later one. The API server answers
// from its
// cache, and does not read the object from etcd and decode it again, which takes most of the time for a large object.
func (s *Source) GetManagedResourceSince(
	ctx context.Context, name types.NamespacedName, version string,
) (*resourcesv1alpha1.ManagedResource, error) {
	mr := &resourcesv1alpha1.ManagedResource{}
	err := s.Get(ctx, name, mr, &client.GetOptions{Raw: &metav1.GetOptions{ResourceVersion: version}})
	if version != "" && (apierrors.IsTimeout(err) || apierrors.IsResourceExpired(err)) { // this API server lags behind
		return s.GetManagedResource(ctx, name)
	}
	return mr, err
}

// May reports whether the user may perform a verb on a ManagedResource.
func (s *Source) May(ctx context.Context, verb string, name types.NamespacedName) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: resourcesv1alpha1.GroupName, Resource: "managedresources", Verb: verb, Namespace: name.Namespace, Name: name.Name,
		},
	}}
	err := s.Create(ctx, review)
	return review.Status.Allowed, err
}

// HasNoKind reports whether an error means that the API server does not serve the kind, and not that an object is missing.
func HasNoKind(err error) bool {
	return meta.IsNoMatchError(err) ||
		apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}
