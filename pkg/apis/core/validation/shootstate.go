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
		for j, resource := range extension.Resources {
			ref := at.Child("resources").Index(j)
			errs = append(errs, required(resource.Name, ref.Child("name"))...)
			errs = append(errs, required(resource.ResourceRef.Kind, ref.Child("resourceRef", "kind"))...)
			errs = append(errs, required(resource.ResourceRef.Name, ref.Child("resourceRef", "name"))...)
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
