package validation_test

import (
	"strings"
	"testing"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	. "github.com/trellis-k8s/trellis/pkg/apis/core/validation"
)

func TestValidateInternalSecret(t *testing.T) {
	const key, account = "metadata/annotations", "{kubernetes.io/service-account.name: a}"
	checkRules(t, "internalsecret", 0, noDefaults, ValidateInternalSecret, []rule{
		{"", "", ""},
		{"metadata/name", "a_b", "metadata.name Invalid"},
		{"data", "{'a b': YQ==}", "data[a b] Invalid"},
		{"data", "{a: " + strings.Repeat("YWFh", 1<<20/3+1) + "}", "data TooLong"},
		{"type", "example.org/any", ""},
		{"type", "kubernetes.io/service-account-token", "metadata.annotations[kubernetes.io/service-account.name] Required"},
		{"type; " + key, "kubernetes.io/service-account-token; " + account, ""},
		{"type", "kubernetes.io/dockercfg", "data[.dockercfg] Required"},
		{"type; data/.dockercfg", "kubernetes.io/dockercfg; YQ==", "data[.dockercfg] Invalid"},
		{"type; data/.dockercfg", "kubernetes.io/dockercfg; e30=", ""},
		{"type", "kubernetes.io/dockerconfigjson", "data[.dockerconfigjson] Required"},
		{"type; data/.dockerconfigjson", "kubernetes.io/dockerconfigjson; YQ==", "data[.dockerconfigjson] Invalid"},
		{"type", "kubernetes.io/basic-auth", "data[password] Required, data[username] Required"},
		{"type; data/username", "kubernetes.io/basic-auth; YQ==", ""},
		{"type", "kubernetes.io/ssh-auth", "data[ssh-privatekey] Required"},
		{"type", "kubernetes.io/tls", "data[tls.crt] Required, data[tls.key] Required"},
		{"type; data", "kubernetes.io/tls; {tls.crt: YQ==, tls.key: YQ==}", ""},
	})
}

func TestValidateInternalSecretUpdate(t *testing.T) {
	checkUpdates(t, "internalsecret", 0, noDefaults, ValidateInternalSecretUpdate, []rule{
		{"", "", ""},
		{"type", "other", "type Invalid"},
		{"data/b", "YQ==", ""},
		{"data/b c", "YQ==", "data[b c] Invalid"},
		{"immutable", "true", ""},
	})
	none := noDefaults[v1beta1.InternalSecret]
	before := example(t, "internalsecret", 0)
	change(t, before, "immutable; metadata/resourceVersion", "true; '1'")
	for _, rule := range []rule{
		{"", "", ""},
		{"metadata/labels", "{a: b}", ""},
		{"immutable", "false", "immutable Forbidden"},
		{"immutable", "", "immutable Forbidden"},
		{"data/b", "YQ==", "data Forbidden"},
		{"data/ca.crt", "YQ==", "data Forbidden"},
		{"data", "{}", "data Forbidden"},
		{"data", "{ca.key: Y2VydGlmaWNhdGU=}", "data Forbidden"},
	} {
		now := example(t, "internalsecret", 0)
		change(t, now, "immutable; metadata/resourceVersion", "true; '1'")
		change(t, now, rule.path, rule.value)
		compare(t, ValidateInternalSecretUpdate(decode(t, now, none), decode(t, before, none)), rule.want)
	}
}
