package controller

import (
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/istiocluster"
)

// TestDifferences checks that missing and different EnvoyFilters are written, that superfluous ones are deleted unless they are
// already being deleted, and that all others are unchanged.
func TestDifferences(t *testing.T) {
	desired := func(namespace string) *unstructured.Unstructured {
		object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"in": namespace}}}
		object.SetNamespace(namespace)
		object.SetName("a-cluster-configuration")
		return object
	}
	present := func(namespace, digest string) *filter {
		return &filter{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a-cluster-configuration"}, digest: digest}
	}
	going := present("going", "x")
	going.DeletionTimestamp = &metav1.Time{}
	var got []string
	for _, one := range differences(
		[]*unstructured.Unstructured{desired("different"), desired("missing"), desired("right")},
		[]*filter{present("different", "x"), going, present("more", "x"), present("right", istiocluster.Digest(desired("right")))},
	) {
		what := "update "
		switch {
		case one.desired == nil:
			what = "delete "
		case one.present == nil:
			what = "create "
		}
		if (one.digest() == "") != (one.desired == nil) {
			t.Errorf("the digest of %s is %q", one.key(), one.digest())
		}
		got = append(got, what+one.key().Namespace)
	}
	if text := strings.Join(got, ", "); text != "update different, create missing, delete more" {
		t.Errorf("got %s", text)
	}
}

// TestReduce checks that irrelevant fields are removed.
func TestReduce(t *testing.T) {
	service := reduceService(&corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "a", Name: "b", Labels: map[string]string{"a": "b"}, ManagedFields: []metav1.ManagedFieldsEntry{{}},
			Annotations: map[string]string{istiocluster.AnnotationExportTo: "*", "a": "b"},
		},
		Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.1", Ports: []corev1.ServicePort{{Name: "web", Port: 80, NodePort: 30000, AppProtocol: ptr.To("grpc")}}},
	})
	if service.Labels != nil || service.ManagedFields != nil || service.Spec.ClusterIP != "" || service.Spec.Ports[0].NodePort != 0 ||
		!maps.Equal(service.Annotations, map[string]string{istiocluster.AnnotationExportTo: "*"}) || *service.Spec.Ports[0].AppProtocol != "grpc" {
		t.Errorf("got %+v", service)
	}
	namespace := reduceNamespace(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "a", UID: "1", Labels: map[string]string{"a": "b", istiocluster.LabelExposureClass: ""}, Annotations: map[string]string{"a": "b"},
	}, Status: corev1.NamespaceStatus{Phase: corev1.NamespaceTerminating}})
	if namespace.Annotations != nil || namespace.UID != "1" || !isTerminating(namespace) ||
		!maps.Equal(namespace.Labels, map[string]string{istiocluster.LabelExposureClass: ""}) {
		t.Errorf("got %+v", namespace)
	}
}
