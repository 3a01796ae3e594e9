package controller

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/cachetransform"
	"github.com/trellis-k8s/trellis/pkg/istiocluster"
)

// CacheOptions returns the options of the cache for Reconciler.Cache: the fields of Services and Namespaces that it
// keeps. Do not use the cache for other purposes, which may need more fields, and do not change its objects.
func CacheOptions() cache.Options {
	return cache.Options{
		DefaultUnsafeDisableDeepCopy: ptr.To(true),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Service{}:   {Transform: cachetransform.Of(reduceService)},
			&corev1.Namespace{}: {Transform: cachetransform.Of(reduceNamespace)},
		},
	}
}

func reduceService(service *corev1.Service) *corev1.Service {
	reduced := &corev1.Service{ObjectMeta: cachetransform.Meta(service)}
	reduced.Annotations = cachetransform.KeepKeys(service.Annotations, istiocluster.AnnotationExportTo)
	for _, port := range service.Spec.Ports {
		reduced.Spec.Ports = append(reduced.Spec.Ports, corev1.ServicePort{Name: port.Name, Port: port.Port, AppProtocol: port.AppProtocol})
	}
	return reduced
}

func reduceNamespace(namespace *corev1.Namespace) *corev1.Namespace {
	reduced := &corev1.Namespace{ObjectMeta: cachetransform.Meta(namespace)}
	reduced.Status.Phase = namespace.Status.Phase
	reduced.Labels = cachetransform.KeepKeys(namespace.Labels, istiocluster.LabelRole, istiocluster.LabelExposureClass)
	return reduced
}

// filter is the cached form of an EnvoyFilter.
type filter struct {
	metav1.ObjectMeta
	digest string
}

func reduceFilter(object *unstructured.Unstructured) any {
	return &filter{ObjectMeta: cachetransform.Meta(object), digest: istiocluster.Digest(object)}
}
