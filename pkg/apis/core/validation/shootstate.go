package validation

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// ValidateShootState checks a ShootState.
func ValidateShootState(state *v1beta1.ShootState) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&state.ObjectMeta, true, labelName, field.NewPath("metadata"))
	path := field.NewPath("spec")
	for i, data := range state.Spec.Gardener {
		at := path.Child("gardener").Index(i)
		errs = append(errs, required(data.Name, at.Child("name"))...)
		errs = append(errs, oneOf(data.Type, at.Child("type"), "secret", "machine-state")...)
	}
	for i, extension := range state.Spec.Extensions {
		at := path.Child("extensions").Index(i)
		errs = append(errs, required(extension.Kind, at.Child("kind"))...)
		errs = append(errs, notEmpty(extension.Purpose, at.Child("purpose"))...)
		errs = append(errs, unique(extension.Resources, at.Child("resources"), "name",
			func(resource v1beta1.NamedResourceReference) string { return resource.Name })...)
		for j, resource := range extension.Resources {
			at, ref := at.Child("resources").Index(j), resource.ResourceRef
			errs = append(errs, required(resource.Name, at.Child("name"))...)
			errs = append(errs, referencedType(ref.APIVersion, ref.Kind, at.Child("resourceRef"), secret, configMap)...)
			errs = append(errs, required(ref.Name, at.Child("resourceRef", "name"))...)
		}
	}
	for i, resource := range state.Spec.Resources {
		at := path.Child("resources").Index(i)
		errs = append(errs, referencedType(resource.APIVersion, resource.Kind, at, secret, configMap)...)
		errs = append(errs, required(resource.Name, at.Child("name"))...)
	}
	return errs
}

// ValidateShootStateUpdate checks a ShootState that replaces another.
func ValidateShootStateUpdate(state, old *v1beta1.ShootState) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&state.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return append(errs, ValidateShootState(state)...)
}
