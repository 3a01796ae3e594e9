package shootsecrets

import (
	"maps"
	"slices"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// everything returns a Shoot with all fields that name Secrets of its namespace, and some other fields.
func everything() *corev1beta1.Shoot {
	reference := func(apiVersion, kind, name string) autoscalingv1.CrossVersionObjectReference {
		return autoscalingv1.CrossVersionObjectReference{APIVersion: apiVersion, Kind: kind, Name: name}
	}
	shoot := &corev1beta1.Shoot{}
	spec := &shoot.Spec
	spec.SeedName = ptr.To("one")
	spec.SecretBindingName, spec.CredentialsBindingName = ptr.To("binding"), ptr.To("binding")
	spec.Kubernetes.KubeAPIServer = &corev1beta1.KubeAPIServerConfig{
		AdmissionPlugins: []corev1beta1.AdmissionPlugin{{Name: "A", KubeconfigSecretName: ptr.To("webhooks")}, {Name: "B"}},
		StructuredAuthorization: &corev1beta1.StructuredAuthorization{ConfigMapName: "config", Kubeconfigs: []corev1beta1.AuthorizerKubeconfigReference{
			{AuthorizerName: "a", SecretName: "authorizer"}, {AuthorizerName: "b", SecretName: "webhooks"},
		}},
		StructuredAuthentication: &corev1beta1.StructuredAuthentication{ConfigMapName: "config"},
	}
	spec.Resources = []corev1beta1.NamedResourceReference{
		{Name: "a", ResourceRef: reference("v1", "Secret", "resource")}, {Name: "b", ResourceRef: reference("v1", "ConfigMap", "config")},
		{Name: "c", ResourceRef: reference("example.org/v1", "Secret", "of-another-group")},
	}
	spec.DNS = &corev1beta1.DNS{Providers: []corev1beta1.DNSProvider{
		{SecretName: ptr.To("dns-old")}, {CredentialsRef: ptr.To(reference("v1", "Secret", "dns"))},
		{CredentialsRef: ptr.To(reference("security.gardener.cloud/v1alpha1", "WorkloadIdentity", "identity"))},
	}}
	return shoot
}

func TestNamed(t *testing.T) {
	want := []string{"authorizer", "dns", "dns-old", "resource", "webhooks"}
	if got := Named(everything()); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Named(&corev1beta1.Shoot{}); len(got) > 0 {
		t.Errorf("an empty Shoot names %q", got)
	}
}

// TestReduce checks that the reduced Shoot in the cache names the same Secrets.
func TestReduce(t *testing.T) {
	shoot := everything()
	reduced := &corev1beta1.Shoot{Spec: Reduce(&shoot.Spec)}
	if got, want := Named(reduced), Named(shoot); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if reduced.Spec.SecretBindingName != nil || reduced.Spec.Kubernetes.KubeAPIServer.StructuredAuthentication != nil {
		t.Errorf("the cache keeps %+v", reduced.Spec)
	}
}

// TestWanted checks that each Seed may read the Secrets that its own Shoots name. A Shoot that moves counts for both Seeds.
func TestWanted(t *testing.T) {
	shoot := func(spec, status string, secrets ...string) corev1beta1.Shoot {
		var made corev1beta1.Shoot
		if spec != "" {
			made.Spec.SeedName = &spec
		}
		if status != "" {
			made.Status.SeedName = &status
		}
		server := &corev1beta1.KubeAPIServerConfig{}
		for _, name := range secrets {
			server.AdmissionPlugins = append(server.AdmissionPlugins, corev1beta1.AdmissionPlugin{KubeconfigSecretName: ptr.To(name)})
		}
		made.Spec.Kubernetes.KubeAPIServer = server
		return made
	}
	got := wanted([]corev1beta1.Shoot{
		shoot("one", "one", "b", "a"), shoot("one", "", "b", "c"), shoot("two", "one", "moves"), shoot("", "", "unscheduled"), shoot("three", "three"),
	})
	want := map[string]string{"one": "a b c moves", "two": "moves"}
	if len(got) != len(want) {
		t.Errorf("permissions are granted to %q", slices.Sorted(maps.Keys(got)))
	}
	for seed, names := range want {
		if text := strings.Join(got[seed], " "); text != names {
			t.Errorf("Seed %s may read %q, want %q", seed, text, names)
		}
	}
}

func TestObjects(t *testing.T) {
	role, binding := role("garden-dev", "one", []string{"a"}), binding("garden-dev", "one")
	if role.Name != "gardener.cloud:system:seed:one:shoot-secrets" || binding.Name != role.Name || binding.RoleRef.Name != role.Name ||
		len(binding.Subjects) != 1 || binding.Subjects[0].Name != "gardener.cloud:system:seed:one" || binding.Subjects[0].Kind != "User" {
		t.Errorf("the objects are %+v, %+v", role, binding)
	}
	if len(role.Rules) != 1 || !slices.Equal(role.Rules[0].ResourceNames, []string{"a"}) || !slices.Equal(role.Rules[0].Verbs, []string{"get", "list", "watch"}) {
		t.Errorf("the rules are %+v", role.Rules)
	}
}
