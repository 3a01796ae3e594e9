package kubeapiserver

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

const issuer = "https://login.example.org"

func TestNamesOfUsers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		claim, prefix *string
		want          string
	}{
		{nil, nil, issuer + "#"},
		{ptr.To("sub"), ptr.To(""), issuer + "#"},
		{ptr.To("email"), nil, ""},
		{ptr.To("email"), ptr.To("oidc:"), "oidc:"},
		{ptr.To("sub"), ptr.To("-"), ""},
	} {
		oidc := &corev1beta1.OIDCConfig{IssuerURL: ptr.To(issuer), UsernameClaim: test.claim, UsernamePrefix: test.prefix}
		mappings, _ := jwtAuthenticator(oidc)["claimMappings"].(tree)
		username, _ := mappings["username"].(tree)
		if username["prefix"] != test.want || username["claim"] != ptr.Deref(test.claim, "sub") {
			t.Errorf("claim %v, prefix %v: got %v, want the prefix %q", test.claim, test.prefix, username, test.want)
		}
	}
}

// TestOpenIDConnectIsValid checks the file with the code of Kubernetes.
func TestOpenIDConnectIsValid(t *testing.T) {
	t.Parallel()
	for name, oidc := range map[string]*corev1beta1.OIDCConfig{
		"least": {IssuerURL: ptr.To(issuer), ClientID: ptr.To("client")},
		"all": {
			IssuerURL: ptr.To(issuer), ClientID: ptr.To("client"), GroupsClaim: ptr.To("groups"), GroupsPrefix: ptr.To("oidc:"),
			UsernameClaim: ptr.To("email"), RequiredClaims: map[string]string{"hd": "example.org", "a": "b"}, SigningAlgs: []string{"ES256"},
		},
	} {
		values := Values{}
		values.Config.OIDCConfig = oidc
		text, err := authentication(values)
		if err != nil {
			t.Fatal(err)
		}
		scheme := runtime.NewScheme()
		install.Install(scheme)
		config := &apiserver.AuthenticationConfiguration{}
		if _, _, err := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder().Decode([]byte(text), nil, config); err != nil {
			t.Fatal(err)
		}
		if errs := validation.ValidateAuthenticationConfiguration(authenticationcel.NewDefaultCompiler(), config, nil); len(errs) > 0 {
			t.Errorf("%s: %v in\n%s", name, errs.ToAggregate(), text)
		}
	}
}
