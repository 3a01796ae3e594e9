package extension

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	finalizers "github.com/trellis-k8s/trellis/pkg/finalizer"
)

const recordFinalizer = "extensions.gardener.cloud/dnsrecord"

// newSecretsOf returns the controller for DNSRecords, with objects in the API server.
func newSecretsOf(t *testing.T, objects ...client.Object) (*secretsOf, client.Client) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{AddToScheme, clientgoscheme.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	of, err := kindOf(&extensionsv1alpha1.DNSRecord{}, "", scheme)
	if err != nil {
		t.Fatal(err)
	}
	return &secretsOf{
		kinds: []kind{of}, watched: c, client: c, uncached: c, released: map[client.ObjectKey]bool{},
		finalizers: finalizers.Holder{Client: c, Uncached: c, Owner: fieldManager},
	}, c
}

func secretWith(names ...string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: "dns", Finalizers: names}}
}

func namespaceOf(deleting bool) *corev1.Namespace {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shoot"}}
	if deleting {
		namespace.DeletionTimestamp, namespace.Finalizers = ptr.To(metav1.Now()), []string{"example.org/held"}
	}
	return namespace
}

func recordOf(secret string, deleting bool) *extensionsv1alpha1.DNSRecord {
	record := &extensionsv1alpha1.DNSRecord{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: "internal", Finalizers: []string{recordFinalizer}}}
	record.Spec.SecretRef = corev1.SecretReference{Namespace: "shoot", Name: secret}
	if deleting {
		record.DeletionTimestamp = ptr.To(metav1.Now())
	}
	return record
}

// TestDeletedSecrets checks which Secrets that are being deleted lose their finalizer, so that the resource-manager can create them again.
func TestDeletedSecrets(t *testing.T) {
	for name, test := range map[string]struct {
		objects []client.Object
		gone    bool
	}{
		"a record needs it":              {[]client.Object{namespaceOf(false), recordOf("dns", false)}, true},
		"nothing needs it":               {[]client.Object{namespaceOf(false), recordOf("another", false)}, true},
		"the record is being deleted":    {[]client.Object{namespaceOf(false), recordOf("dns", true)}, false},
		"the namespace is being deleted": {[]client.Object{namespaceOf(true), recordOf("dns", false)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			secret := secretWith(recordFinalizer)
			s, c := newSecretsOf(t, append(test.objects, secret)...)
			if err := c.Delete(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
			request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(secret)}
			if _, err := s.Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			if err := c.Get(t.Context(), request.NamespacedName, secret); (err != nil) != test.gone {
				t.Errorf("the Secret: %v, finalizers %v", err, secret.Finalizers)
			}
		})
	}
}

// TestSecretThatCameBack checks that a Secret is protected again after it was created again, and that other Secrets are not written.
func TestSecretThatCameBack(t *testing.T) {
	secret := secretWith(recordFinalizer)
	s, c := newSecretsOf(t, namespaceOf(false), recordOf("dns", false), secret)
	request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(secret)}
	reconciled := func(want ...string) {
		t.Helper()
		if _, err := s.Reconcile(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		found := &corev1.Secret{}
		if err := c.Get(t.Context(), request.NamespacedName, found); client.IgnoreNotFound(err) != nil || len(found.Finalizers) != len(want) {
			t.Errorf("the Secret has the finalizers %v (%v), want %v", found.Finalizers, err, want)
		}
	}
	if err := c.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	reconciled()
	for _, want := range [][]string{{recordFinalizer}, {}} { // the second one was never released
		if err := c.Create(t.Context(), secretWith()); err != nil {
			t.Fatal(err)
		}
		reconciled(want...)
		found := secretWith()
		if err := c.Patch(t.Context(), found, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
			t.Fatal(err)
		}
		if err := c.Delete(t.Context(), found); err != nil {
			t.Fatal(err)
		}
	}
}
