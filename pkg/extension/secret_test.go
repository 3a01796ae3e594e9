package extension

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

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

// TestSecretOfANewObject checks that a Secret keeps its finalizer while another object needs it that the cache does not contain
// yet, and loses it with the last object.
func TestSecretOfANewObject(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{AddToScheme, clientgoscheme.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	const held = "extensions.gardener.cloud/dnsrecord"
	record := func(name string) *extensionsv1alpha1.DNSRecord {
		object := &extensionsv1alpha1.DNSRecord{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: name, UID: types.UID(name), Finalizers: []string{held}}}
		object.Spec.Type, object.Spec.SecretRef = "local", corev1.SecretReference{Namespace: "shoot", Name: "dns"}
		return object
	}
	old, fresh := record("old"), record("fresh")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: "dns", Finalizers: []string{held}}}
	cached := fake.NewClientBuilder().WithScheme(scheme).WithObjects(old, secret).Build()
	live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(old, secret, fresh).Build()
	kind, err := kindOf(old, "local", scheme)
	if err != nil {
		t.Fatal(err)
	}
	c := &controllerOf[*extensionsv1alpha1.DNSRecord]{kind: kind, client: cached, uncached: live}
	for _, want := range []int{1, 0} {
		if err := c.releaseSecret(t.Context(), old); err != nil {
			t.Fatal(err)
		}
		if err := cached.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
			t.Fatal(err)
		}
		if len(secret.Finalizers) != want {
			t.Errorf("the Secret has the finalizers %v, want %d", secret.Finalizers, want)
		}
		if err := client.IgnoreNotFound(live.Delete(t.Context(), removed(t, live, fresh))); err != nil {
			t.Fatal(err)
		}
	}
}

// removed removes the finalizers of an object.
func removed(t *testing.T, c client.Client, object *extensionsv1alpha1.DNSRecord) *extensionsv1alpha1.DNSRecord {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err == nil {
		object.Finalizers = nil
		if err := c.Update(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	return object
}
