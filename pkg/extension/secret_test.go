package extension

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
)

// TestSecretOfExposures checks that the credentials of an exposure are protected like those of other kinds. They are in the
// namespace of the exposure, with and without a namespace in the reference.
func TestSecretOfExposures(t *testing.T) {
	exposure := &extensionsv1alpha1.SelfHostedShootExposure{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "root"}}
	if ref := secretRef(exposure); ref != nil {
		t.Errorf("without credentials: %+v", ref)
	}
	want := corev1.SecretReference{Namespace: "kube-system", Name: "cloudprovider"}
	for _, namespace := range []string{"", "kube-system"} {
		exposure.Spec.CredentialsRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: "cloudprovider"}
		if ref := secretRef(exposure); ref == nil || *ref != want {
			t.Errorf("with the namespace %q: %+v, want %+v", namespace, ref, want)
		}
	}
}
