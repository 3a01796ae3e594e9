package shootreference

import (
	"slices"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

func resource(apiVersion, kind, name string) corev1beta1.NamedResourceReference {
	return corev1beta1.NamedResourceReference{Name: name, ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: apiVersion, Kind: kind, Name: name}}
}

// shootWith returns a Shoot that names an object in each possible field.
func shootWith() *corev1beta1.Shoot {
	const identities = "security.gardener.cloud/v1alpha1"
	shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Name: "s", Finalizers: []string{"other", constants.GardenerName}}}
	shoot.Spec.Resources = []corev1beta1.NamedResourceReference{
		resource("v1", "Secret", "secret"), resource("v1", "ConfigMap", "config"), resource(identities, "WorkloadIdentity", "identity"),
		resource("apps/v1", "Deployment", "ignored"), resource("v1", "Secret", "secret"),
	}
	shoot.Spec.DNS = &corev1beta1.DNS{Providers: []corev1beta1.DNSProvider{
		{SecretName: ptr.To("dns-secret")},
		{CredentialsRef: &autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Secret", Name: "dns-ref"}},
		{CredentialsRef: &autoscalingv1.CrossVersionObjectReference{APIVersion: identities, Kind: "WorkloadIdentity", Name: "dns-identity"}},
		{CredentialsRef: &autoscalingv1.CrossVersionObjectReference{APIVersion: identities, Kind: "WorkloadIdentity", Name: "identity"}},
	}}
	shoot.Spec.Kubernetes.KubeAPIServer = &corev1beta1.KubeAPIServerConfig{
		AdmissionPlugins: []corev1beta1.AdmissionPlugin{{Name: "a", KubeconfigSecretName: ptr.To("plugin")}, {Name: "b"}},
		AuditConfig:      &corev1beta1.AuditConfig{AuditPolicy: &corev1beta1.AuditPolicy{ConfigMapRef: &corev1.ObjectReference{Name: "audit"}}},
		StructuredAuthentication: &corev1beta1.StructuredAuthentication{
			ConfigMapName: "authentication",
		},
		StructuredAuthorization: &corev1beta1.StructuredAuthorization{
			ConfigMapName: "authorization", Kubeconfigs: []corev1beta1.AuthorizerKubeconfigReference{{AuthorizerName: "w", SecretName: "authorizer"}},
		},
	}
	return shoot
}

// TestOf checks that everything that a Shoot names is found, also in what the cache keeps, and that a Shoot that its gardenlet has released names
// nothing.
func TestOf(t *testing.T) {
	want := []string{
		"ConfigMap/audit", "ConfigMap/authentication", "ConfigMap/authorization", "ConfigMap/config", "Secret/authorizer", "Secret/dns-ref",
		"Secret/dns-secret", "Secret/plugin", "Secret/secret", "WorkloadIdentity/dns-identity", "WorkloadIdentity/identity",
	}
	shoot, kept := shootWith(), &corev1beta1.Shoot{}
	keep(kept, shoot)
	for what, each := range map[string]*corev1beta1.Shoot{"the Shoot": shoot, "what the cache keeps": kept} {
		got := values(each)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s names %q, want %q", what, got, want)
		}
	}
	if slices.Contains(kept.Finalizers, "other") || !slices.Contains(kept.Finalizers, constants.GardenerName) {
		t.Errorf("the cache keeps the finalizers %q", kept.Finalizers)
	}
	shoot.DeletionTimestamp = ptr.To(metav1.Now())
	if got := values(shoot); len(got) != len(want) {
		t.Errorf("while gardenlet deletes it, the Shoot names %q", got)
	}
	shoot.Finalizers = []string{"other", constants.FinalizerReferenceProtection}
	if got := values(shoot); len(got) > 0 {
		t.Errorf("after gardenlet has released it, the Shoot names %q", got)
	}
	if got := values(&corev1beta1.Shoot{}); len(got) > 0 {
		t.Errorf("an empty Shoot names %q", got)
	}
}

func TestDecide(t *testing.T) {
	const ours, others = constants.FinalizerReferenceProtection, constants.GardenerName
	for name, test := range map[string]struct {
		finalizers       []string
		deleted, nothing bool
		want             step
	}{
		"new":                      {nil, false, false, stepAdd},
		"added":                    {[]string{ours, others}, false, false, stepNone},
		"names nothing":            {[]string{others}, false, true, stepNone},
		"names nothing any more":   {[]string{ours, others}, false, true, stepRelease},
		"gardenlet deletes it":     {[]string{ours, others}, true, false, stepNone},
		"gardenlet has deleted it": {[]string{ours}, true, false, stepRelease},
		"deleted before it had it": {[]string{others}, true, false, stepNone},
		"released":                 {nil, true, false, stepNone},
	} {
		shoot := shootWith()
		if test.nothing {
			shoot.Spec = corev1beta1.ShootSpec{}
		}
		shoot.Finalizers = test.finalizers
		if test.deleted {
			shoot.DeletionTimestamp = ptr.To(metav1.Now())
		}
		if got := decide(shoot); got != test.want {
			t.Errorf("%s: got %d, want %d", name, got, test.want)
		}
	}
}
