package validation

import (
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/apis/internal/rules"
	"github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
)

// ValidateCredentialsBinding checks a CredentialsBinding.
func ValidateCredentialsBinding(binding *v1alpha1.CredentialsBinding) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&binding.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	errs = append(errs, singleType(binding.Provider.Type, field.NewPath("provider", "type"))...)
	errs = append(errs, rules.Credentials(&binding.CredentialsRef, field.NewPath("credentialsRef"))...)
	return append(errs, rules.Quotas(binding.Quotas, field.NewPath("quotas"))...)
}

// ValidateCredentialsBindingUpdate checks a CredentialsBinding that replaces another.
func ValidateCredentialsBindingUpdate(binding, old *v1alpha1.CredentialsBinding) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&binding.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	errs = append(errs, rules.Immutable(binding.Provider, old.Provider, field.NewPath("provider"))...)
	errs = append(errs, rules.Immutable(binding.CredentialsRef, old.CredentialsRef, field.NewPath("credentialsRef"))...)
	errs = append(errs, rules.Immutable(binding.Quotas, old.Quotas, field.NewPath("quotas"))...)
	return append(errs, ValidateCredentialsBinding(binding)...)
}

// singleType checks the type of an infrastructure. Only SecretBindings may have several types, separated by commas.
func singleType(value string, path *field.Path) field.ErrorList {
	if strings.Contains(value, ",") {
		return field.ErrorList{field.Invalid(path, value, "must be a single type, without commas")}
	}
	return rules.Required(value, path)
}
