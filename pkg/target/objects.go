// Package target reaches objects of any kind in the target cluster, by their metadata: what an object holds beyond it, such
// as the data of a Secret, never leaves the API server, unless somebody asks for it by the clients.
package target

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/trellis-k8s/trellis/pkg/object"
)

// ErrKindNotServed says that the API server answers for the group and version but does not serve the kind, or that it
// serves neither. It does not say that objects of the kind are gone.
var ErrKindNotServed = errors.New("the target cluster does not serve this kind")

// discoveryTimeout bounds one discovery request.
const discoveryTimeout = 30 * time.Second

// Objects gives access to the objects of one cluster. It is safe for concurrent use.
type Objects struct {
	config *rest.Config
	// http bounds every request, unbounded does not: watches take as long as they take.
	http, unbounded *http.Client
	discovery       discovery.DiscoveryInterface
	metadata        metadata.Interface
	dynamic         dynamic.Interface
	rest            rest.Interface
	core            corev1client.CoreV1Interface
	apps            appsv1client.AppsV1Interface

	mu     sync.RWMutex
	mapper meta.RESTMapper
	// mappings are those that the mapper, which searches long, has found.
	mappings map[schema.GroupVersionKind]*meta.RESTMapping
}

// NewObjects returns access to the objects of the cluster that config points to.
func NewObjects(config *rest.Config, httpClient *http.Client) (*Objects, error) {
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
	// Discovery takes no context that could end it.
	bounded := *httpClient
	bounded.Timeout = discoveryTimeout
	discoveryClient, err := discovery.NewDiscoveryClientForConfigAndClient(config, &bounded)
	if err != nil {
		return nil, fmt.Errorf("create a discovery client for the target cluster: %w", err)
	}
	coreClient, err := corev1client.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("create a client for the target cluster: %w", err)
	}
	appsClient, err := appsv1client.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("create a client for the target cluster: %w", err)
	}
	objects := &Objects{
		config: config, http: &bounded, unbounded: httpClient, discovery: discoveryClient, metadata: metadataClient, dynamic: dynamicClient,
		rest: restClient, core: coreClient, apps: appsClient,
	}
	if err := objects.Rediscover(); err != nil {
		return nil, err
	}
	return objects, nil
}

// DynamicClient returns the client of objects with all that they hold.
func (o *Objects) DynamicClient() dynamic.Interface { return o.dynamic }

// MetadataClient returns the client of objects' metadata.
func (o *Objects) MetadataClient() metadata.Interface { return o.metadata }

// CoreClient returns the client of the kinds of the core group.
func (o *Objects) CoreClient() corev1client.CoreV1Interface { return o.core }

// As returns access in the name of a ServiceAccount of the cluster, by impersonation.
func (o *Objects) As(serviceAccount types.NamespacedName) (*Objects, error) {
	config := rest.CopyConfig(o.config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + serviceAccount.Namespace + ":" + serviceAccount.Name,
		// The groups that Kubernetes puts every ServiceAccount into.
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + serviceAccount.Namespace, "system:authenticated"},
	}
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the target cluster as ServiceAccount %s: %w", serviceAccount, err)
	}
	return NewObjects(config, httpClient)
}

// CheckServiceAccount returns an error if a ServiceAccount does not exist.
func (o *Objects) CheckServiceAccount(ctx context.Context, serviceAccount types.NamespacedName) error {
	_, err := o.core.ServiceAccounts(serviceAccount.Namespace).Get(ctx, serviceAccount.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("look for ServiceAccount %s of the target cluster: %w", serviceAccount, err)
	}
	return nil
}

// Rediscover forgets what is known of the cluster's kinds. They are read again when they are next asked for.
func (o *Objects) Rediscover() error {
	mapper, err := apiutil.NewDynamicRESTMapper(o.config, o.http)
	if err != nil {
		return fmt.Errorf("create a REST mapper for the target cluster: %w", err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mapper, o.mappings = mapper, map[schema.GroupVersionKind]*meta.RESTMapping{}
	return nil
}

// Mapping returns the resource and scope of a kind. The error wraps ErrKindNotServed if the kind is not served; any
// other error means that it could not be found out.
func (o *Objects) Mapping(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	o.mu.RLock()
	mapper, found := o.mapper, o.mappings[gvk]
	o.mu.RUnlock()
	if found != nil {
		return found, nil
	}
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err == nil {
		o.remember(gvk, mapper, mapping)
		return mapping, nil
	}
	if !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("discover %s: %w", gvk, err)
	}
	served, err := o.Serves(gvk)
	if err != nil {
		return nil, err
	}
	if served {
		return nil, fmt.Errorf("discover %s: the kind has just appeared, try again", gvk)
	}
	return nil, fmt.Errorf("%s: %w", gvk, ErrKindNotServed)
}

// remember keeps what a mapper found, unless it was replaced meanwhile.
func (o *Objects) remember(gvk schema.GroupVersionKind, finder meta.RESTMapper, mapping *meta.RESTMapping) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mapper == finder {
		o.mappings[gvk] = mapping
	}
}

// Serves asks the API server itself, past any cache, whether it serves the kind in its version. An error means that
// it could not be found out, as for an aggregated API that is down.
func (o *Objects) Serves(gvk schema.GroupVersionKind) (bool, error) {
	list, err := o.discovery.ServerResourcesForGroupVersion(gvk.GroupVersion().String())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("discover %s: %w", gvk.GroupVersion(), err)
	}
	for _, resource := range list.APIResources {
		if resource.Kind == gvk.Kind {
			return true, nil
		}
	}
	return false, nil
}

// Abolished asks the API server itself whether no version of the kind is served any more, so that no object of it can
// be read, changed or deleted. An error means that it could not be found out: an API server that is not ready or an
// aggregated API that is down proves nothing.
func (o *Objects) Abolished(ctx context.Context, gk schema.GroupKind) (bool, error) {
	if err := o.discovery.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error(); err != nil {
		return false, fmt.Errorf("target cluster is not ready to tell whether it serves %s: %w", gk, err)
	}
	groups, err := o.discovery.ServerGroups()
	if err != nil {
		return false, fmt.Errorf("discover the API groups of the target cluster: %w", err)
	}
	for _, group := range groups.Groups {
		if group.Name != gk.Group {
			continue
		}
		for _, version := range group.Versions {
			served, err := o.Serves(gk.WithVersion(version.Version))
			if served || err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// Resource returns the client for the object that ref names, in exactly its version. Errors are those of Mapping.
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

// ResourceInAnyVersion returns the client for the object that ref names, in another version of its kind if its own is
// not served. Errors are those of Mapping.
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

func (o *Objects) mappingInAnyVersion(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	mapping, err := o.Mapping(gvk)
	if !errors.Is(err, ErrKindNotServed) {
		return mapping, err
	}
	o.mu.RLock()
	defer o.mu.RUnlock()
	if other, otherErr := o.mapper.RESTMapping(gvk.GroupKind()); otherErr == nil {
		return other, nil
	}
	return nil, err
}

// Defined returns the client for all objects of the kind that the named CustomResourceDefinition defines.
func (o *Objects) Defined(definition string) (metadata.ResourceInterface, error) {
	plural, group, _ := strings.Cut(definition, ".") // Kubernetes requires the name <plural>.<group>
	o.mu.RLock()
	defer o.mu.RUnlock()
	resource, err := o.mapper.ResourceFor(schema.GroupVersionResource{Group: group, Resource: plural})
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

// FinalizeNamespace removes the finalizers of a Namespace's spec, which only its finalize subresource does.
func (o *Objects) FinalizeNamespace(ctx context.Context, name string) error {
	namespace, err := o.core.Namespaces().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	namespace.Spec.Finalizers = nil
	_, err = o.core.Namespaces().Finalize(ctx, namespace, metav1.UpdateOptions{})
	return err
}

// Explain turns the error of a request into ErrKindNotServed where the API server's "not found" speaks of the resource
// and not of the object, and forgets the outdated mapping. Other errors are returned as they are.
func (o *Objects) Explain(ref object.Ref, err error) error {
	if !apierrors.IsNotFound(err) || !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		return err
	}
	if rediscoverErr := o.Rediscover(); rediscoverErr != nil {
		return errors.Join(err, rediscoverErr)
	}
	return fmt.Errorf("%s: %w", ref.GroupVersionKind, ErrKindNotServed)
}
