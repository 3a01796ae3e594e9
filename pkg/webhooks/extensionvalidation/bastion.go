package extensionvalidation

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

type bastionSpec struct {
	Type string `json:"type"`
	// UserData is the Base64-encoded script that the machine runs when it starts. It may contain secrets.
	UserData string     `json:"userData"`
	Ingress  []struct{} `json:"ingress"`
}

func checkBastion(bastion *object[bastionSpec]) field.ErrorList {
	errs := required(
		text{specPath.Child("type"), bastion.Spec.Type},
		text{specPath.Child("userData"), bastion.Spec.UserData},
	)
	if len(bastion.Spec.Ingress) == 0 {
		errs = append(errs, missing(specPath.Child("ingress")))
	}
	return errs
}

func compareBastions(spec, old *bastionSpec) field.ErrorList {
	errs := immutable(change{specPath.Child("type"), spec.Type, old.Type})
	if spec.UserData != old.UserData {
		errs = append(errs, field.Invalid(specPath.Child("userData"), field.OmitValueType{}, apivalidation.FieldImmutableErrorMsg))
	}
	return errs
}
