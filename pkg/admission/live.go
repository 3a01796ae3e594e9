package admission

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/apis/served"
)

// liveTimeout is the time that a request waits for one object or list.
const liveTimeout = 10 * time.Second

// ReadLive reads an object of the garden's API without a memory, and reports whether it exists.
func (g *Garden) ReadLive(ctx context.Context, namespace, name string, object client.Object) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	return exists(g.Live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object), object, namespace, name)
}

// ListLive reads all objects of a kind of the garden's API without a memory. An empty namespace means all namespaces.
func (g *Garden) ListLive(ctx context.Context, list client.ObjectList, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	if err := g.Live.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return Unavailable("list %T: %v", list, err)
	}
	return nil
}

// Exists reports whether an object of any kind exists, in the garden's API or in kube-apiserver. It reads only metadata.
func (g *Garden) Exists(ctx context.Context, kind schema.GroupVersionKind, namespace, name string) (bool, error) {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	reader := client.Reader(g.Kube)
	if served.Of(kind).Name != "" {
		reader = g.Live
	}
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
	if apierrors.IsForbidden(err) {
		return false, fmt.Errorf("the API server has no right to read %s objects, so they cannot be referred to", kind.Kind)
	}
	return exists(err, object, namespace, name)
}

func exists(err error, object client.Object, namespace, name string) (bool, error) {
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, Unavailable("read %T %s: %v", object, Key(namespace, name), err)
	}
	return true, nil
}

// ResourceOf returns the resource of a kind, and whether its objects are in namespaces. An unknown kind is an error.
func (g *Garden) ResourceOf(kind schema.GroupVersionKind) (schema.GroupResource, bool, error) {
	if resource := served.Of(kind); resource.Name != "" {
		return schema.GroupResource{Group: kind.Group, Resource: resource.Name}, resource.Namespaced, nil
	}
	mapping, err := g.Kube.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return schema.GroupResource{}, false, fmt.Errorf("the garden has no kind %s in %s", kind.Kind, kind.GroupVersion())
	}
	if err != nil {
		return schema.GroupResource{}, false, Unavailable("look up the kind %s: %v", kind, err)
	}
	return mapping.Resource.GroupResource(), mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
}

// SecretsOfGarden returns the metadata of the Secrets in the namespace garden that have a label, as kube-apiserver has them in memory. A
// consistent list waits until that memory has caught up with etcd, which takes 100 ms whenever anything else was just written.
func (g *Garden) SecretsOfGarden(ctx context.Context, label, value string) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	fromMemory := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}}
	if err := g.Kube.List(ctx, list, fromMemory, client.InNamespace(constants.GardenNamespace), client.MatchingLabels{label: value}); err != nil {
		return nil, Unavailable("list the Secrets with the label %s=%s: %v", label, value, err)
	}
	return list.Items, nil
}
