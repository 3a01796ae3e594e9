package kubeapiserver

import (
	"maps"
	"slices"

	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// jwtAuthenticator returns the entry of an AuthenticationConfiguration that accepts the same tokens, and gives the same names to users,
// as the flags --oidc-* of kube-apiserver do. There is no entry for signature algorithms.
func jwtAuthenticator(oidc *corev1beta1.OIDCConfig) tree {
	issuer := tree{"url": ptr.Deref(oidc.IssuerURL, ""), "audiences": []any{ptr.Deref(oidc.ClientID, "")}}
	if bundle := ptr.Deref(oidc.CABundle, ""); bundle != "" {
		issuer["certificateAuthority"] = bundle
	}
	claim := ptr.Deref(oidc.UsernameClaim, "sub")
	mappings := tree{"username": tree{"claim": claim, "prefix": usernamePrefix(oidc, claim)}}
	if groups := ptr.Deref(oidc.GroupsClaim, ""); groups != "" {
		mappings["groups"] = tree{"claim": groups, "prefix": ptr.Deref(oidc.GroupsPrefix, "")}
	}
	authenticator := tree{"issuer": issuer, "claimMappings": mappings}
	var rules []any
	for _, name := range slices.Sorted(maps.Keys(oidc.RequiredClaims)) {
		rules = append(rules, tree{"claim": name, "requiredValue": oidc.RequiredClaims[name]})
	}
	if len(rules) > 0 {
		authenticator["claimValidationRules"] = rules
	}
	return authenticator
}

// usernamePrefix returns what precedes the names of users. Names other than email addresses get the URL of the issuer, so that no issuer
// can name the users of another one.
func usernamePrefix(oidc *corev1beta1.OIDCConfig, claim string) string {
	switch prefix := ptr.Deref(oidc.UsernamePrefix, ""); {
	case prefix == "-":
		return ""
	case prefix == "" && claim != "email":
		return ptr.Deref(oidc.IssuerURL, "") + "#"
	default:
		return prefix
	}
}
