package validation_test

import (
	"testing"

	. "github.com/trellis-k8s/trellis/pkg/apis/internal/ruletest"
	"github.com/trellis-k8s/trellis/pkg/apis/settings/v1alpha1"
	. "github.com/trellis-k8s/trellis/pkg/apis/settings/validation"
)

var common = []Row{
	{"", "", ""},
	{"metadata/name", "a_b", "metadata.name Invalid"},
	{"spec/weight", "0", "spec.weight Invalid"},
	{"spec/weight", "100", ""},
	{"spec/weight", "101", "spec.weight Invalid"},
	{"spec/shootSelector", "", ""},
	{"spec/shootSelector", "{matchExpressions: [{key: a, operator: Like}]}", "spec.shootSelector Invalid"},
	{"spec/server/clientID", "''", "spec.server.clientID Required"},
	{"spec/server/issuerURL", "''", "spec.server.issuerURL Required"},
	{"spec/server/issuerURL", "http://login.example.org", "spec.server.issuerURL Invalid"},
	{"spec/server/issuerURL", "'https://'", "spec.server.issuerURL Invalid"},
	{"spec/server/issuerURL", "'https://%zz'", "spec.server.issuerURL Invalid"},
	{"spec/server/signingAlgs", "[RS512, ES256, PS384]", ""},
	{"spec/server/signingAlgs", "[HS256]", "spec.server.signingAlgs[0] NotSupported"},
	{"spec/server/caBundle", "none", "spec.server.caBundle Invalid"},
	{"spec/server/signingAlgs", "[RS256, RS256]", "spec.server.signingAlgs[1] Duplicate"},
}

func TestValidateOpenIDConnectPreset(t *testing.T) {
	Check(t, "settings", "openidconnectpreset", v1alpha1.SetDefaultsOpenIDConnectPreset, ValidateOpenIDConnectPreset, append([]Row{
		{"metadata/namespace", "", "metadata.namespace Required"},
	}, common...))
}

func TestValidateClusterOpenIDConnectPreset(t *testing.T) {
	Check(t, "settings", "clusteropenidconnectpreset", v1alpha1.SetDefaultsClusterOpenIDConnectPreset, ValidateClusterOpenIDConnectPreset, append([]Row{
		{"metadata/namespace", "a", "metadata.namespace Forbidden"},
		{"spec/projectSelector", "", ""},
		{"spec/projectSelector", "{matchExpressions: [{key: a, operator: Like}]}", "spec.projectSelector Invalid"},
	}, common...))
}
