package target

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/trellis-k8s/trellis/pkg/object"
)

// Reading reads objects of one kind.
type Reading interface {
	// Get returns the object with a name.
	Get(ctx context.Context, name string) (runtime.Object, error)
	// List and Watch correspond to the verbs of the Kubernetes API.
	List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// Collection reads all objects of one kind.
type Collection struct {
	// Namespaced reports whether the objects are in namespaces.
	Namespaced bool
	// In returns the Reading for a namespace, or for all namespaces if it is empty.
	In func(namespace string) Reading
}

// Metadata returns the Collection of the metadata of a kind, in another version if its own is not served. Errors are
// those of Mapping.
func (o *Objects) Metadata(gvk schema.GroupVersionKind) (Collection, error) {
	mapping, err := o.mappingInAnyVersion(gvk)
	if err != nil {
		return Collection{}, err
	}
	return Collection{
		Namespaced: isNamespaced(mapping),
		In: func(namespace string) Reading {
			return metadataReading{o.metadata.Resource(mapping.Resource).Namespace(namespace)}
		},
	}, nil
}

// Whole returns the Collection of whole objects of a kind, in another version if its own is not served. Objects of the
// kinds that client-go knows are typed, which are cheaper to decode, all others are unstructured. Errors are those of
// Mapping.
func (o *Objects) Whole(gvk schema.GroupVersionKind) (Collection, error) {
	mapping, err := o.mappingInAnyVersion(gvk)
	if err != nil {
		return Collection{}, err
	}
	if !clientgoscheme.Scheme.Recognizes(mapping.GroupVersionKind) {
		return Collection{
			Namespaced: isNamespaced(mapping),
			In: func(namespace string) Reading {
				return dynamicReading{o.dynamic.Resource(mapping.Resource).Namespace(namespace)}
			},
		}, nil
	}
	client, err := o.typedClient(mapping.GroupVersionKind.GroupVersion())
	if err != nil {
		return Collection{}, err
	}
	return Collection{
		Namespaced: isNamespaced(mapping),
		In: func(namespace string) Reading {
			return typedReading{client: client, mapping: mapping, namespace: namespace}
		},
	}, nil
}

// ReadingOf returns the Reading for an object, either of whole objects or of metadata. Errors are those of Mapping.
func (o *Objects) ReadingOf(ref object.Ref, whole bool) (Reading, error) {
	if err := ref.Validate(); err != nil {
		return nil, err
	}
	open := o.Metadata
	if whole {
		open = o.Whole
	}
	collection, err := open(ref.GroupVersionKind)
	if err != nil {
		return nil, err
	}
	if !collection.Namespaced {
		return collection.In(metav1.NamespaceNone), nil
	}
	return collection.In(ref.Namespace), nil
}

func isNamespaced(mapping *meta.RESTMapping) bool {
	return mapping.Scope.Name() == meta.RESTScopeNameNamespace
}

func (o *Objects) typedClient(gv schema.GroupVersion) (rest.Interface, error) {
	config := rest.CopyConfig(o.config)
	config.GroupVersion, config.APIPath = &gv, "/apis"
	if gv.Group == "" {
		config.APIPath = "/api"
	}
	config.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion()
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	client, err := rest.RESTClientForConfigAndClient(config, o.http)
	if err != nil {
		return nil, fmt.Errorf("create a client for %s: %w", gv, err)
	}
	return client, nil
}

type metadataReading struct{ metadata.ResourceInterface }

// Get returns the metadata of an object.
func (r metadataReading) Get(ctx context.Context, name string) (runtime.Object, error) {
	return r.ResourceInterface.Get(ctx, name, metav1.GetOptions{})
}

// List returns the metadata of objects.
func (r metadataReading) List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	return r.ResourceInterface.List(ctx, options)
}

type dynamicReading struct{ dynamic.ResourceInterface }

// Get returns an unstructured object.
func (r dynamicReading) Get(ctx context.Context, name string) (runtime.Object, error) {
	return r.ResourceInterface.Get(ctx, name, metav1.GetOptions{})
}

// List returns unstructured objects.
func (r dynamicReading) List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	return r.ResourceInterface.List(ctx, options)
}

type typedReading struct {
	client    rest.Interface
	mapping   *meta.RESTMapping
	namespace string
}

// Get returns a typed object.
func (r typedReading) Get(ctx context.Context, name string) (runtime.Object, error) {
	obj, err := clientgoscheme.Scheme.New(r.mapping.GroupVersionKind)
	if err != nil {
		return nil, err
	}
	return obj, r.request().Name(name).Do(ctx).Into(obj)
}

// List returns typed objects.
func (r typedReading) List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	gvk := r.mapping.GroupVersionKind
	list, err := clientgoscheme.Scheme.New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err != nil {
		return nil, err
	}
	return list, r.request().VersionedParams(&options, clientgoscheme.ParameterCodec).Do(ctx).Into(list)
}

// Watch watches typed objects.
func (r typedReading) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	return r.request().VersionedParams(&options, clientgoscheme.ParameterCodec).Watch(ctx)
}

func (r typedReading) request() *rest.Request {
	return r.client.Get().NamespaceIfScoped(r.namespace, r.namespace != "").Resource(r.mapping.Resource.Resource)
}
