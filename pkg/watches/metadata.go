package watches

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// MetadataOf returns empty metadata of a kind of the core group, for watches, caches and reads of metadata.
func MetadataOf(kind string) *metav1.PartialObjectMetadata {
	return Metadata(corev1.SchemeGroupVersion.WithKind(kind))
}

// Metadata returns empty metadata of a kind.
func Metadata(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	return object
}
