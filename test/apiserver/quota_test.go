package apiserver

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/test/kit"
)

// TestQuota limits the number of objects of a kind in a namespace with a ResourceQuota of Kubernetes.
func TestQuota(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	ensureNamespace(t, c, "garden-quota")
	limited := corev1.ResourceName("count/internalsecrets.core.gardener.cloud")
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-quota", Name: "limit"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{limited: resource.MustParse("1")}},
	}
	kit.Must(t, c.Create(t.Context(), quota))
	create := func(name string) error {
		return c.Create(t.Context(), &gardencorev1beta1.InternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-quota", Name: name}})
	}
	kit.EventuallyTrue(t, "the quota is counted and admits the first InternalSecret", func() bool { return create("first") == nil })
	// The API server may admit some objects before its cache contains the quota.
	count := 0
	kit.EventuallyTrue(t, "a further InternalSecret is forbidden", func() bool {
		count++
		return apierrors.IsForbidden(create(fmt.Sprintf("further-%d", count)))
	})
}
