// Package validation checks objects of settings.gardener.cloud/v1alpha1 after their defaults are set. The rules are
// Gardener's. The API server no longer serves these kinds. The checks are for objects that are migrated.
package validation

import (
	"net/url"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/apis/internal/rules"
	"github.com/trellis-k8s/trellis/pkg/apis/settings/v1alpha1"
)

// The bounds of spec.weight.
const (
	leastWeight = 1
	mostWeight  = 100
)

var signatureAlgorithms = []string{"RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512"}

// ValidateOpenIDConnectPreset checks an OpenIDConnectPreset.
func ValidateOpenIDConnectPreset(preset *v1alpha1.OpenIDConnectPreset) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&preset.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	return append(errs, validateSpec(&preset.Spec, field.NewPath("spec"))...)
}

// ValidateClusterOpenIDConnectPreset checks a ClusterOpenIDConnectPreset.
func ValidateClusterOpenIDConnectPreset(preset *v1alpha1.ClusterOpenIDConnectPreset) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&preset.ObjectMeta, false, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	path := field.NewPath("spec")
	errs = append(errs, validateSpec(&preset.Spec.OpenIDConnectPresetSpec, path)...)
	return append(errs, rules.Selector(preset.Spec.ProjectSelector, path.Child("projectSelector"))...)
}

func validateSpec(spec *v1alpha1.OpenIDConnectPresetSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if spec.Weight < leastWeight || spec.Weight > mostWeight {
		errs = append(errs, field.Invalid(path.Child("weight"), spec.Weight, "must be between 1 and 100"))
	}
	errs = append(errs, rules.Selector(spec.ShootSelector, path.Child("shootSelector"))...)
	server, at := &spec.Server, path.Child("server")
	errs = append(errs, rules.Required(server.ClientID, at.Child("clientID"))...)
	if missing := rules.Required(server.IssuerURL, at.Child("issuerURL")); missing != nil {
		errs = append(errs, missing...)
	} else if issuer, err := url.Parse(server.IssuerURL); err != nil || issuer.Scheme != "https" || issuer.Host == "" {
		errs = append(errs, field.Invalid(at.Child("issuerURL"), server.IssuerURL, "must be a URL with the scheme https"))
	}
	errs = append(errs, rules.UniqueValues(server.SigningAlgs, at.Child("signingAlgs"))...)
	for i, algorithm := range server.SigningAlgs {
		errs = append(errs, rules.OneOf(algorithm, at.Child("signingAlgs").Index(i), signatureAlgorithms...)...)
	}
	return errs
}
