package extension

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/extension"
	"github.com/trellis-k8s/trellis/test/kit"
)

// TestSecretComesBack checks that a Secret of a resource-manager that an object needs can be deleted by hand, and is protected again when
// it was created again.
func TestSecretComesBack(t *testing.T) {
	w := newWorld(t)
	const shoot, ofType = "shoot--dev--secrets", "secrets"
	w.shoot(shoot, nil)
	mgr, _ := w.manager()
	record := &extensionsv1alpha1.DNSRecord{}
	kit.Must(t, extension.AddToManager(mgr, actuator[*extensionsv1alpha1.DNSRecord]{&calls{}}, extension.Options{Type: ofType, RateLimiter: quickly()}))
	kit.Must(t, extension.AddSecretsToManager(mgr, record))
	kit.Run(t, mgr)

	w.read("dnsrecord", shoot, record)
	record.Spec.Type = ofType
	configure(record, settings{})
	metav1.SetMetaDataAnnotation(&record.ObjectMeta, constants.AnnotationGardenerOperation, constants.OperationReconcile)
	credentials := func() *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: shoot, Name: record.Spec.SecretRef.Name, Labels: map[string]string{resourcesv1alpha1.LabelManagedBy: "test"},
		}}
	}
	protected := func(reason string) {
		t.Helper()
		kit.Eventually(t, reason, func() string {
			secret := credentials()
			kit.Must(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(secret), secret))
			if !slices.Equal(secret.Finalizers, []string{"extensions.gardener.cloud/dnsrecord"}) {
				return fmt.Sprintf("its finalizers are %v", secret.Finalizers)
			}
			return ""
		})
	}
	w.create(credentials())
	w.create(record)
	protected("the Secret is protected")
	kit.Must(t, w.client.Delete(t.Context(), credentials()))
	w.eventuallyGone(credentials())
	w.create(credentials())
	protected("the Secret is protected again")
	kit.Must(t, w.client.Delete(t.Context(), record))
	w.eventuallyGone(record)
}
