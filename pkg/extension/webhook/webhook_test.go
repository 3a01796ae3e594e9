package webhook

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

var nobody = http.NotFoundHandler()

func TestConfigurations(t *testing.T) {
	options, err := Options{Name: "provider-cloud", Namespace: "extension-provider-cloud"}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	rules := []admissionregistrationv1.RuleWithOperations{Writes("apps", "v1", "deployments")}
	webhooks := []Webhook{
		{Name: "controlplane", Rules: rules, Handler: nobody, NamespaceSelector: ShootProvider("cloud"), ObjectSelector: ControlPlaneObjects()},
		{Name: "quota", Validating: true, Rules: rules, Handler: nobody, FailurePolicy: admissionregistrationv1.Ignore, TimeoutSeconds: 2,
			MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "all", Expression: "true"}}},
		{Name: "nodes", Target: TargetShoot, Rules: rules, Handler: nobody, NamespaceSelector: KubeSystem()},
	}
	mutating, validating := configurations(webhooks, options, TargetSeed, []byte("bundle"))
	if mutating.Name != "gardener-extension-provider-cloud" || len(mutating.Webhooks) != 1 || len(validating.Webhooks) != 1 || len(objectsOf(mutating, validating)) != 2 {
		t.Fatalf("%+v, %+v", mutating, validating)
	}
	one := mutating.Webhooks[0]
	if one.Name != "controlplane.cloud.extensions.gardener.cloud" || *one.FailurePolicy != admissionregistrationv1.Fail || *one.TimeoutSeconds != 10 ||
		*one.MatchPolicy != admissionregistrationv1.Exact || one.NamespaceSelector.MatchExpressions[0].Key != "shoot.gardener.cloud/provider" ||
		one.ObjectSelector.MatchExpressions[0].Key != "provider.extensions.gardener.cloud/mutated-by-controlplane-webhook" {
		t.Errorf("%+v", one)
	}
	if service := one.ClientConfig.Service; service == nil || service.Name != "gardener-extension-provider-cloud" || *service.Port != 443 || *service.Path != "/controlplane" {
		t.Errorf("the address is %+v", one.ClientConfig)
	}
	if other := validating.Webhooks[0]; *other.FailurePolicy != admissionregistrationv1.Ignore || *other.TimeoutSeconds != 2 || len(other.MatchConditions) != 1 {
		t.Errorf("%+v", other)
	}

	mutating, validating = configurations(webhooks, options, TargetShoot, []byte("bundle"))
	if len(objectsOf(mutating, validating)) != 1 || mutating.Name != "gardener-extension-provider-cloud-shoot" || mutating.Labels["remediation.webhook.shoot.gardener.cloud/exclude"] != "true" {
		t.Fatalf("%+v, %+v", mutating, validating)
	}
	one = mutating.Webhooks[0]
	if *one.FailurePolicy != admissionregistrationv1.Ignore || string(one.ClientConfig.CABundle) != "bundle" ||
		*one.ClientConfig.URL != "https://gardener-extension-provider-cloud.extension-provider-cloud:443/nodes" {
		t.Errorf("%+v", one)
	}
	if names := options.dnsNames(); !slices.Contains(names, "gardener-extension-provider-cloud.extension-provider-cloud") {
		t.Errorf("the certificate is for %v", names)
	}
}

func TestWrongOptions(t *testing.T) {
	for want, options := range map[string]Options{
		"need a name": {Namespace: "a"}, "is not https": {Name: "a", Namespace: "a", URL: "http://a"}, "is not https://": {Name: "a", Namespace: "a", URL: "https://a/b"},
	} {
		if _, err := options.withDefaults(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", options, err)
		}
	}
	rules := []admissionregistrationv1.RuleWithOperations{Writes("", "v1", "pods")}
	for want, webhooks := range map[string][]Webhook{
		"needs a name":    {{Rules: rules, Handler: nobody}},
		"is used twice":   {{Name: "a", Rules: rules, Handler: nobody}, {Name: "a", Rules: rules, Handler: nobody}},
		"has the target ": {{Name: "a", Rules: rules, Handler: nobody, Target: "moon"}},
	} {
		if err := check(webhooks); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestSelectors(t *testing.T) {
	if keys := ShootNetwork("cloud", "calico").MatchExpressions; len(keys) != 2 || keys[1].Key != "networking.shoot.gardener.cloud/provider" {
		t.Errorf("%+v", keys)
	}
	for want, got := range map[string]string{
		"seed.gardener.cloud/provider": SeedProvider("a").MatchExpressions[0].Key, "backup.gardener.cloud/provider": BackupProvider("a").MatchExpressions[0].Key,
		"extensions.gardener.cloud/dns": ExtensionType("dns").MatchExpressions[0].Key, "gardener.cloud/purpose": CloudProviderSecrets().MatchExpressions[0].Key,
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
