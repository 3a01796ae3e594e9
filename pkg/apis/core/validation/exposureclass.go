package validation

import (
	"fmt"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// maxHandlerName leaves room for the prefix of the handler's namespace in a Seed.
const maxHandlerName = 34

// ValidateExposureClass checks an ExposureClass.
func ValidateExposureClass(class *v1beta1.ExposureClass) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&class.ObjectMeta, false, labelName, field.NewPath("metadata"))
	handler := field.NewPath("handler")
	errs = append(errs, dnsLabel(class.Handler, handler)...)
	if len(class.Handler) > maxHandlerName {
		errs = append(errs, field.Invalid(handler, class.Handler, fmt.Sprintf("must be no more than %d characters", maxHandlerName)))
	}
	if scheduling := class.Scheduling; scheduling != nil {
		path := field.NewPath("scheduling")
		if scheduling.SeedSelector != nil {
			errs = append(errs, selector(&scheduling.SeedSelector.LabelSelector, path.Child("seedSelector"))...)
		}
		errs = append(errs, tolerations(scheduling.Tolerations, path.Child("tolerations"))...)
	}
	return errs
}

// ValidateExposureClassUpdate checks an ExposureClass that replaces another.
func ValidateExposureClassUpdate(class, old *v1beta1.ExposureClass) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&class.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	errs = append(errs, immutable(class.Handler, old.Handler, field.NewPath("handler"))...)
	errs = append(errs, immutable(class.Scheduling, old.Scheduling, field.NewPath("scheduling"))...)
	return append(errs, ValidateExposureClass(class)...)
}
