package live

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/fieldowner"
)

// BenchmarkObserve reduces a Deployment, which happens for each event and for each response to a write.
func BenchmarkObserve(b *testing.B) {
	const fields = `{"f:metadata":{"f:annotations":{"f:resources.gardener.cloud/origin":{}},"f:labels":{"f:app":{},"f:resources.gardener.cloud/managed-by":{}}},` +
		`"f:spec":{"f:replicas":{},"f:selector":{},"f:template":{"f:metadata":{"f:labels":{"f:app":{},"f:resources.gardener.cloud/managed-by":{}}},` +
		`"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{".":{},"f:args":{},"f:env":{"k:{\"name\":\"HOME\"}":{".":{},"f:name":{},"f:value":{}}},` +
		`"f:image":{},"f:name":{},"f:ports":{"k:{\"containerPort\":8080,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:name":{}}},` +
		`"f:resources":{"f:limits":{"f:memory":{}},"f:requests":{"f:cpu":{},"f:memory":{}}}}}}}}}`
	meta := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "app", UID: "0b6cf0f0-1111-4222-8333-123456789abc", ResourceVersion: "12345",
		Labels:      map[string]string{"app": "app", resourcesv1alpha1.LabelManagedBy: "resource-manager"},
		Annotations: map[string]string{resourcesv1alpha1.AnnotationOrigin: "shop/app"},
		ManagedFields: []metav1.ManagedFieldsEntry{
			{Manager: resourcesv1alpha1.FieldManager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "apps/v1", FieldsV1: metav1.NewFieldsV1(fields)},
			{
				Manager: "kube-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "apps/v1", Subresource: "status",
				FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:observedGeneration":{}}}`),
			},
		},
	}}
	policy := fieldowner.DefaultPolicy()
	b.ReportAllocs()
	for b.Loop() {
		if Observe(meta, policy).Unlabelled {
			b.Fatal("the Pod template has the label")
		}
	}
}
