package projectuse

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/served"
)

const (
	own   = "garden-dev"
	other = "garden-other"
)

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// shoot returns a Shoot that uses a binding.
func shoot(namespace string, secret, credentials *string) *corev1beta1.Shoot {
	made := &corev1beta1.Shoot{ObjectMeta: meta(namespace, "shoot")}
	made.Spec.SecretBindingName, made.Spec.CredentialsBindingName = secret, credentials
	return made
}

func TestOf(t *testing.T) {
	secret := func(namespace, secretNamespace, quotaNamespace string) client.Object {
		return &corev1beta1.SecretBinding{
			ObjectMeta: meta(namespace, "b"), SecretRef: corev1.SecretReference{Namespace: secretNamespace, Name: "s"},
			Quotas: []corev1.ObjectReference{{Namespace: quotaNamespace, Name: "q"}},
		}
	}
	credentials := func(namespace, credentialsNamespace, quotaNamespace string) client.Object {
		return &securityv1alpha1.CredentialsBinding{
			ObjectMeta: meta(namespace, "b"), CredentialsRef: corev1.ObjectReference{Namespace: credentialsNamespace, Name: "s"},
			Quotas: []corev1.ObjectReference{{Namespace: quotaNamespace, Name: "q"}},
		}
	}
	for name, test := range map[string]struct {
		objects        []client.Object
		shoots, others string
	}{
		"nothing":                      {},
		"a Shoot":                      {objects: []client.Object{shoot(own, nil, nil)}, shoots: "Shoot garden-dev/shoot"},
		"a Shoot elsewhere":            {objects: []client.Object{shoot(other, nil, nil)}},
		"a BackupEntry":                {objects: []client.Object{&corev1beta1.BackupEntry{ObjectMeta: meta(own, "e")}}, others: "BackupEntry garden-dev/e"},
		"a Secret, used":               {objects: []client.Object{secret(other, own, other), shoot(other, ptr.To("b"), nil)}, others: "Shoot garden-other/shoot (with SecretBinding b)"},
		"a Quota, used":                {objects: []client.Object{secret(other, other, own), shoot(other, ptr.To("b"), nil)}, others: "Shoot garden-other/shoot (with SecretBinding b)"},
		"a Secret, not used":           {objects: []client.Object{secret(other, own, other), shoot(other, ptr.To("c"), ptr.To("b"))}},
		"a Secret, bound in itself":    {objects: []client.Object{secret(own, own, own)}},
		"credentials, used":            {objects: []client.Object{credentials(other, own, other), shoot(other, nil, ptr.To("b"))}, others: "Shoot garden-other/shoot (with CredentialsBinding b)"},
		"a Quota with credentials":     {objects: []client.Object{credentials(other, other, own), shoot(other, nil, ptr.To("b"))}, others: "Shoot garden-other/shoot (with CredentialsBinding b)"},
		"credentials, not used":        {objects: []client.Object{credentials(other, own, own), shoot(other, ptr.To("b"), nil)}},
		"bindings of other namespaces": {objects: []client.Object{credentials(other, other, other), shoot(other, nil, ptr.To("b"))}},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := served.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			use, err := Of(t.Context(), fake.NewClientBuilder().WithScheme(scheme).WithObjects(test.objects...).Build(), own)
			slices.Sort(use.Others)
			if err != nil || strings.Join(use.Shoots, ",") != test.shoots || strings.Join(use.Others, ",") != test.others {
				t.Errorf("used by %+v, error %v", use, err)
			}
		})
	}
}

// TestKeep checks that the cache keeps which binding a Shoot uses.
func TestKeep(t *testing.T) {
	kept := &corev1beta1.Shoot{}
	Keep(kept, shoot(own, ptr.To("a"), ptr.To("b")))
	if *kept.Spec.SecretBindingName != "a" || *kept.Spec.CredentialsBindingName != "b" {
		t.Errorf("it keeps %+v", kept.Spec)
	}
}
