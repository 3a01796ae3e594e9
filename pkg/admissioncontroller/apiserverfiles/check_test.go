package apiserverfiles

import (
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// shoot has settings that the files must agree with.
func shoot() *corev1beta1.Shoot {
	return &corev1beta1.Shoot{
		Spec: corev1beta1.ShootSpec{Kubernetes: corev1beta1.Kubernetes{KubeAPIServer: &corev1beta1.KubeAPIServerConfig{
			EnableAnonymousAuthentication: ptr.To(true),
			ServiceAccountConfig:          &corev1beta1.ServiceAccountConfig{Issuer: ptr.To("https://issuer.example.org"), AcceptedIssuers: []string{"https://old.example.org"}},
			StructuredAuthorization: &corev1beta1.StructuredAuthorization{
				Kubeconfigs: []corev1beta1.AuthorizerKubeconfigReference{{AuthorizerName: "hook", SecretName: "hook"}},
			},
		}}},
		Status: corev1beta1.ShootStatus{AdvertisedAddresses: []corev1beta1.ShootAdvertisedAddress{{Name: "external", URL: "https://api.example.org"}}},
	}
}

const (
	policy         = "apiVersion: audit.k8s.io/v1\nkind: Policy\n"
	authentication = "apiVersion: apiserver.config.k8s.io/v1beta1\nkind: AuthenticationConfiguration\n"
	authorization  = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n"
	webhook        = "- {type: Webhook, name: hook, webhook: {timeout: 3s, subjectAccessReviewVersion: v1, matchConditionSubjectAccessReviewVersion: v1, failurePolicy: Deny}}\n"
)

func jwt(issuer, more string) string {
	return "jwt: [{issuer: {url: '" + issuer + "', audiences: [a]}, claimMappings: {username: {expression: " + more + "}}}]\n"
}

func TestChecks(t *testing.T) {
	for name, test := range map[string]struct {
		file             File
		content, refused string
	}{
		"an audit policy":                     {AuditPolicy, policy + "rules: [{level: Metadata}]\n", ""},
		"an unknown level":                    {AuditPolicy, policy + "rules: [{level: All}]\n", "rules[0].level"},
		"an unknown field":                    {AuditPolicy, policy + "rule: []\n", "not a valid Policy"},
		"another kind":                        {AuditPolicy, authentication, `the kind "AuthenticationConfiguration", not Policy`},
		"a removed version":                   {AuditPolicy, "apiVersion: audit.k8s.io/v1alpha1\nkind: Policy\n", "not a valid Policy"},
		"no version":                          {AuditPolicy, "kind: Policy\n", "apiVersion and kind must be set"},
		"no YAML":                             {AuditPolicy, "{", "not a valid Policy"},
		"authentication by tokens":            {Authentication, authentication + jwt("https://login.example.org", "claims.sub"), ""},
		"an expression that does not compile": {Authentication, authentication + jwt("https://login.example.org", "'claims.'"), "claimMappings.username"},
		"the issuer of the Shoot":             {Authentication, authentication + jwt("https://issuer.example.org", "claims.sub"), "jwt[0].issuer.url"},
		"an older issuer of the Shoot":        {Authentication, authentication + jwt("https://old.example.org", "claims.sub"), "jwt[0].issuer.url"},
		"an address of the Shoot":             {Authentication, authentication + jwt("https://api.example.org", "claims.sub"), "jwt[0].issuer.url"},
		"anonymous twice":                     {Authentication, authentication + "anonymous: {enabled: true}\n", "anonymous"},
		"a webhook":                           {Authorization, authorization + webhook, ""},
		"a webhook without a kubeconfig":      {Authorization, authorization + strings.Replace(webhook, "name: hook", "name: other", 1), `no entry for the authorizer "other"`},
		"a webhook with a file": {Authorization, authorization + strings.Replace(webhook, "timeout: 3s",
			"timeout: 3s, connectionInfo: {type: KubeConfigFile, kubeConfigFile: /x}", 1), "connectionInfo"},
		"another type":       {Authorization, authorization + "- {type: AlwaysAllow, name: all}\n", "type"},
		"no authorizers":     {Authorization, strings.TrimSuffix(authorization, "authorizers:\n"), "authorizers"},
		"no failure policy":  {Authorization, authorization + strings.Replace(webhook, ", failurePolicy: Deny", "", 1), "failurePolicy"},
		"a timeout too long": {Authorization, authorization + strings.Replace(webhook, "3s", "1h", 1), "timeout"},
	} {
		err := test.file.check(test.content, shoot())
		if (err != nil) != (test.refused != "") || err != nil && !strings.Contains(err.Error(), test.refused) {
			t.Errorf("%s: got %v, want an error with %q", name, err, test.refused)
		}
	}
}
