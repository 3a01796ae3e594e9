package validation

import (
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/internal/rules"
)

// ValidateControllerInstallation checks a ControllerInstallation.
func ValidateControllerInstallation(installation *v1beta1.ControllerInstallation) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&installation.ObjectMeta, false, labelName, field.NewPath("metadata"))
	spec, path := &installation.Spec, field.NewPath("spec")
	errs = append(errs, required(spec.RegistrationRef.Name, path.Child("registrationRef", "name"))...)
	if spec.SeedRef == nil && spec.ShootRef == nil {
		errs = append(errs, field.Required(path.Child("seedRef"), "either seedRef or shootRef is required"))
	}
	if spec.SeedRef != nil {
		errs = append(errs, required(spec.SeedRef.Name, path.Child("seedRef", "name"))...)
	}
	if spec.ShootRef != nil {
		errs = append(errs, required(spec.ShootRef.Name, path.Child("shootRef", "name"))...)
		errs = append(errs, required(spec.ShootRef.Namespace, path.Child("shootRef", "namespace"))...)
	}
	return errs
}

// ValidateControllerInstallationUpdate checks a ControllerInstallation that replaces another.
func ValidateControllerInstallationUpdate(installation, old *v1beta1.ControllerInstallation) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&installation.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	spec, before, path := &installation.Spec, &old.Spec, field.NewPath("spec")
	errs = append(errs, rules.UnchangedInDeletion("controller installation", installation, spec, before, path)...)
	errs = append(errs, immutable(spec.RegistrationRef.Name, before.RegistrationRef.Name, path.Child("registrationRef", "name"))...)
	errs = append(errs, immutable(nameOf(spec.SeedRef), nameOf(before.SeedRef), path.Child("seedRef", "name"))...)
	errs = append(errs, immutable(nameOf(spec.ShootRef), nameOf(before.ShootRef), path.Child("shootRef"))...)
	return append(errs, ValidateControllerInstallation(installation)...)
}

// nameOf returns the namespace and name of an optional reference.
func nameOf(ref *corev1.ObjectReference) [2]string {
	if ref == nil {
		return [2]string{}
	}
	return [2]string{ref.Namespace, ref.Name}
}
