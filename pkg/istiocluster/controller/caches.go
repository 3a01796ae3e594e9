package controller

import (
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/istiocluster"
)

// CacheOptions say how the target cluster is watched.
type CacheOptions struct {
	HTTPClient *http.Client
	Scheme     *runtime.Scheme
	Mapper     meta.RESTMapper
	// ResyncPeriod is the time after which every namespace with DestinationRules is looked at again.
	ResyncPeriod time.Duration
	// Namespaces are those that are watched; empty for all.
	Namespaces []string
}

// NewCache returns a cache of Services and Namespaces in which each object is reduced to what matters. Nobody else may use it.
func NewCache(config *rest.Config, options CacheOptions) (cache.Cache, error) {
	namespaces := map[string]cache.Config{}
	for _, namespace := range options.Namespaces {
		namespaces[namespace] = cache.Config{}
	}
	return cache.New(config, cache.Options{
		HTTPClient: options.HTTPClient, Scheme: options.Scheme, Mapper: options.Mapper,
		SyncPeriod:                   &options.ResyncPeriod,
		DefaultNamespaces:            namespaces,
		DefaultUnsafeDisableDeepCopy: ptr.To(true),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Service{}:   {Transform: reduceService},
			&corev1.Namespace{}: {Transform: reduceNamespace},
		},
	})
}

func essentials(object metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(),
		ResourceVersion: object.GetResourceVersion(), DeletionTimestamp: object.GetDeletionTimestamp(),
	}
}

func reduceService(object any) (any, error) {
	service, ok := object.(*corev1.Service)
	if !ok {
		return object, nil
	}
	reduced := &corev1.Service{ObjectMeta: essentials(service)}
	if exports, found := service.Annotations[istiocluster.AnnotationExportTo]; found {
		reduced.Annotations = map[string]string{istiocluster.AnnotationExportTo: exports}
	}
	for _, port := range service.Spec.Ports {
		reduced.Spec.Ports = append(reduced.Spec.Ports, corev1.ServicePort{Name: port.Name, Port: port.Port, AppProtocol: port.AppProtocol})
	}
	return reduced, nil
}

func reduceNamespace(object any) (any, error) {
	namespace, ok := object.(*corev1.Namespace)
	if !ok {
		return object, nil
	}
	reduced := &corev1.Namespace{ObjectMeta: essentials(namespace)}
	reduced.Status.Phase = namespace.Status.Phase
	for _, key := range []string{istiocluster.LabelRole, istiocluster.LabelExposureClass} {
		if value, found := namespace.Labels[key]; found {
			metav1.SetMetaDataLabel(&reduced.ObjectMeta, key, value)
		}
	}
	return reduced, nil
}

// filter is what is kept of an EnvoyFilter.
type filter struct {
	metav1.ObjectMeta
	digest string
}

func reduceFilter(object *unstructured.Unstructured) any {
	return &filter{ObjectMeta: essentials(object), digest: istiocluster.Digest(object)}
}
