// Package validation checks objects of settings.gardener.cloud/v1alpha1 after their defaults are set. The rules are
// Gardener's.
package validation

import (
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

// ValidateOpenIDConnectPreset checks an OpenIDConnectPreset.
func ValidateOpenIDConnectPreset(preset *v1alpha1.OpenIDConnectPreset) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&preset.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	return append(errs, validateSpec(&preset.Spec, field.NewPath("spec"))...)
}

// ValidateOpenIDConnectPresetUpdate checks an OpenIDConnectPreset that replaces another.
func ValidateOpenIDConnectPresetUpdate(preset, old *v1alpha1.OpenIDConnectPreset) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&preset.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return append(errs, ValidateOpenIDConnectPreset(preset)...)
}

// ValidateClusterOpenIDConnectPreset checks a ClusterOpenIDConnectPreset.
func ValidateClusterOpenIDConnectPreset(preset *v1alpha1.ClusterOpenIDConnectPreset) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&preset.ObjectMeta, false, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	path := field.NewPath("spec")
	errs = append(errs, validateSpec(&preset.Spec.OpenIDConnectPresetSpec, path)...)
	return append(errs, rules.Selector(preset.Spec.ProjectSelector, path.Child("projectSelector"))...)
}

// ValidateClusterOpenIDConnectPresetUpdate checks a ClusterOpenIDConnectPreset that replaces another.
func ValidateClusterOpenIDConnectPresetUpdate(preset, old *v1alpha1.ClusterOpenIDConnectPreset) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&preset.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return append(errs, ValidateClusterOpenIDConnectPreset(preset)...)
}

func validateSpec(spec *v1alpha1.OpenIDConnectPresetSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if spec.Weight < leastWeight || spec.Weight > mostWeight {
		errs = append(errs, field.Invalid(path.Child("weight"), spec.Weight, "must be between 1 and 100"))
	}
	errs = append(errs, rules.Selector(spec.ShootSelector, path.Child("shootSelector"))...)
	server := &spec.Server
	return append(errs, rules.OpenIDConnect(server.ClientID, server.IssuerURL, server.CABundle, server.SigningAlgs, path.Child("server"))...)
}
