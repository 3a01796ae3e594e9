package validation_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	. "github.com/trellis-k8s/trellis/pkg/apis/internal/ruletest"
	"github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	. "github.com/trellis-k8s/trellis/pkg/apis/security/validation"
)

func TestValidateCredentialsBinding(t *testing.T) {
	Check(t, "security", "credentialsbinding", v1alpha1.SetDefaultsCredentialsBinding, ValidateCredentialsBinding, []Row{
		{"", "", ""},
		{"metadata/name", "a_b", "metadata.name Invalid"},
		{"provider/type", "''", "provider.type Required"},
		{"provider/type", "'a,b'", "provider.type Invalid"},
		{"credentialsRef/apiVersion", "", "credentialsRef.apiVersion Required"},
		{"credentialsRef/kind", "", "credentialsRef.kind Required"},
		{"credentialsRef/kind", "ConfigMap", "credentialsRef NotSupported"},
		{"credentialsRef", "{apiVersion: v1, kind: Secret, name: a}", ""},
		{"credentialsRef", "{apiVersion: core.gardener.cloud/v1beta1, kind: InternalSecret, name: a}", ""},
		{"credentialsRef/name", "", "credentialsRef.name Required"},
		{"credentialsRef/namespace", "a.b", "credentialsRef.namespace Invalid"},
		{"quotas/0/name", "", "quotas[0].name Required"},
		{"quotas/0/namespace", "", ""},
		{"quotas/0/namespace", "a.b", "quotas[0].namespace Invalid"},
	})
	CheckUpdate(t, "security", "credentialsbinding", v1alpha1.SetDefaultsCredentialsBinding, ValidateCredentialsBindingUpdate, []Row{
		{"", "", ""},
		{"provider/type", "other", "provider Invalid"},
		{"credentialsRef/name", "other", "credentialsRef Invalid"},
		{"quotas/0/name", "other", "quotas Invalid"},
		{"quotas", "", "quotas Invalid"},
		{"metadata/labels", "{a: b}", ""},
		{"provider/type", "''", "provider Invalid, provider.type Required"},
	})
}

func TestValidateWorkloadIdentity(t *testing.T) {
	withSubject := func(identity *v1alpha1.WorkloadIdentity) {
		if identity.Status.Sub == "" {
			identity.Status.Sub = "gardener.cloud:workloadidentity:garden-dev:local:0d0a4b2c"
		}
	}
	Check(t, "security", "workloadidentity", withSubject, ValidateWorkloadIdentity, []Row{
		{"", "", ""},
		{"metadata/name", "a_b", "metadata.name Invalid"},
		{"spec/audiences", "[]", "spec.audiences Required"},
		{"spec/audiences", "[a, '']", "spec.audiences[1] Required"},
		{"spec/audiences", "[a, a]", "spec.audiences[1] Duplicate"},
		{"spec/targetSystem/type", "''", "spec.targetSystem.type Required"},
		{"spec/targetSystem/type", "'a,b'", "spec.targetSystem.type Invalid"},
		{"status/sub", strings.Repeat("a", 255), ""},
		{"status/sub", strings.Repeat("a", 256), "status.sub Invalid"},
		{"status/sub", "ä", "status.sub Invalid"},
	})
	CheckUpdate(t, "security", "workloadidentity", withSubject, ValidateWorkloadIdentityUpdate, []Row{
		{"", "", ""},
		{"spec/audiences", "[a]", ""},
		{"spec/audiences", "[]", "spec.audiences Required"},
		{"spec/targetSystem/type", "other", "spec.targetSystem.type Invalid"},
		{"spec/targetSystem/providerConfig", "", ""},
		{"status/sub", "other", "status.sub Invalid"},
	})
}

func TestValidateTokenRequest(t *testing.T) {
	validate := func(request *v1alpha1.TokenRequest) field.ErrorList {
		return ValidateTokenRequest(request, "local", "garden-dev")
	}
	Check(t, "security", "tokenrequest", v1alpha1.SetDefaultsTokenRequest, validate, []Row{
		{"", "", ""},
		{"metadata", "{name: local, namespace: garden-dev}", ""},
		{"metadata/name", "other", "metadata.name Invalid"},
		{"metadata/namespace", "other", "metadata.namespace Invalid"},
		{"spec/expirationSeconds", "", ""},
		{"spec/expirationSeconds", "599", "spec.expirationSeconds Invalid"},
		{"spec/expirationSeconds", "600", ""},
		{"spec/expirationSeconds", "4294967296", ""},
		{"spec/expirationSeconds", "4294967297", "spec.expirationSeconds Invalid"},
		{"spec/contextObject", "", ""},
		{"spec/contextObject/kind", "''", "spec.contextObject.kind Required"},
		{"spec/contextObject/apiVersion", "''", "spec.contextObject.apiVersion Required"},
		{"spec/contextObject/name", "''", "spec.contextObject.name Required"},
		{"spec/contextObject/namespace", "''", "spec.contextObject.namespace Invalid"},
		{"spec/contextObject/namespace", "", ""},
		{"spec/contextObject/uid", "''", "spec.contextObject.uid Required"},
	})
	Compare(t, validate(&v1alpha1.TokenRequest{}), "spec.expirationSeconds Required")
}
