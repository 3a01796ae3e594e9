package bindings

import (
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
)

func TestUseOf(t *testing.T) {
	t.Parallel()
	var (
		secrets     []corev1beta1.SecretBinding
		credentials []securityv1alpha1.CredentialsBinding
	)
	for text, into := range map[string]any{`
- {metadata: {namespace: dev, name: a}, provider: {type: "aws,gcp"}, secretRef: {name: near}, quotas: [{name: quota}]}
- {metadata: {namespace: dev, name: b}, secretRef: {namespace: garden, name: far}}
- {metadata: {namespace: dev, name: c}, provider: {type: azure}, secretRef: {name: both}, quotas: [{namespace: garden, name: quota}]}
`: &secrets, `
- {metadata: {namespace: dev, name: a}, provider: {type: aws}, credentialsRef: {kind: Secret, namespace: dev, name: both}, quotas: [{namespace: garden, name: quota}]}
- {metadata: {namespace: dev, name: b}, provider: {type: aws}, credentialsRef: {kind: WorkloadIdentity, namespace: dev, name: near}}
- {metadata: {namespace: dev, name: c}, provider: {type: local}, credentialsRef: {kind: InternalSecret, namespace: dev, name: internal}}
`: &credentials} {
		if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	providers := func(types ...string) map[string]bool {
		found := map[string]bool{}
		for _, one := range types {
			found[one] = true
		}
		return found
	}
	for _, test := range []struct {
		kind, namespace, name string
		want                  Use
	}{
		{Secret, "dev", "near", Use{BySecretBinding: true, Providers: providers("aws", "gcp")}},
		{Secret, "garden", "far", Use{BySecretBinding: true, Providers: providers()}},
		{Secret, "dev", "far", Use{Providers: providers()}},
		{Secret, "dev", "both", Use{BySecretBinding: true, ByCredentialsBinding: true, Providers: providers("aws", "azure")}},
		{WorkloadIdentity, "dev", "near", Use{ByCredentialsBinding: true, Providers: providers("aws")}},
		{WorkloadIdentity, "dev", "both", Use{Providers: providers()}},
		{InternalSecret, "dev", "internal", Use{ByCredentialsBinding: true, Providers: providers("local")}},
		{Quota, "dev", "quota", Use{BySecretBinding: true, Providers: providers("aws", "gcp")}},
		{Quota, "garden", "quota", Use{BySecretBinding: true, ByCredentialsBinding: true, Providers: providers("aws", "azure")}},
	} {
		got := UseOf(Reference{test.kind, types.NamespacedName{Namespace: test.namespace, Name: test.name}}, secrets, credentials)
		if !equality.Semantic.DeepEqual(got, test.want) || got.Any() != (len(test.want.Providers) > 0 || test.want.BySecretBinding) {
			t.Errorf("%s %s/%s: %+v, want %+v", test.kind, test.namespace, test.name, got, test.want)
		}
	}
}

func TestProviderLabels(t *testing.T) {
	t.Parallel()
	before := map[string]string{
		"provider.shoot.gardener.cloud/removed": "true", "provider.shoot.gardener.cloud/local": "false", "mine": "x",
	}
	got := ProviderLabels(before, map[string]bool{"local": true, "aws": true})
	if !maps.Equal(got, map[string]string{"provider.shoot.gardener.cloud/local": "true", "provider.shoot.gardener.cloud/aws": "true", "mine": "x"}) {
		t.Errorf("the labels are %v", got)
	}
	if before["provider.shoot.gardener.cloud/removed"] != "true" {
		t.Error("the argument has changed")
	}
	if got := ProviderLabels(nil, nil); len(got) != 0 {
		t.Errorf("the labels are %v", got)
	}
}
