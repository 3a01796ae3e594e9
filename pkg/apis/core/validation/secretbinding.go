package validation

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/internal/rules"
)

// ValidateSecretBinding checks a SecretBinding that is created.
func ValidateSecretBinding(binding *v1beta1.SecretBinding) field.ErrorList {
	errs := validateSecretBinding(binding)
	if binding.Provider == nil {
		errs = append(errs, field.Required(field.NewPath("provider"), ""))
	}
	return errs
}

// ValidateSecretBindingUpdate checks a SecretBinding that replaces another. Old ones may still lack a provider.
func ValidateSecretBindingUpdate(binding, old *v1beta1.SecretBinding) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&binding.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	errs = append(errs, immutable(binding.SecretRef, old.SecretRef, field.NewPath("secretRef"))...)
	errs = append(errs, immutable(binding.Quotas, old.Quotas, field.NewPath("quotas"))...)
	errs = append(errs, immutableOnceSet(binding.Provider, old.Provider, field.NewPath("provider"))...)
	return append(errs, validateSecretBinding(binding)...)
}

func validateSecretBinding(binding *v1beta1.SecretBinding) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&binding.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	path := field.NewPath("secretRef")
	errs = append(errs, objectName(binding.SecretRef.Name, path.Child("name"))...)
	errs = append(errs, namespaceName(binding.SecretRef.Namespace, path.Child("namespace"))...)
	errs = append(errs, rules.Quotas(binding.Quotas, field.NewPath("quotas"))...)
	if binding.Provider != nil {
		errs = append(errs, required(binding.Provider.Type, field.NewPath("provider", "type"))...)
	}
	return errs
}
