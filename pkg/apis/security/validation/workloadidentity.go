package validation

import (
	"fmt"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/apis/internal/rules"
	"github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
)

// maxSubject is the length that OpenID Connect allows for the subject of a token.
const maxSubject = 255

// ValidateWorkloadIdentity checks a WorkloadIdentity.
func ValidateWorkloadIdentity(identity *v1alpha1.WorkloadIdentity) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&identity.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	path, audiences := field.NewPath("spec"), field.NewPath("spec", "audiences")
	if len(identity.Spec.Audiences) == 0 {
		errs = append(errs, field.Required(audiences, "at least one is required"))
	}
	for i, audience := range identity.Spec.Audiences {
		errs = append(errs, rules.Required(audience, audiences.Index(i))...)
	}
	errs = append(errs, rules.UniqueValues(identity.Spec.Audiences, audiences)...)
	errs = append(errs, singleType(identity.Spec.TargetSystem.Type, path.Child("targetSystem", "type"))...)
	return append(errs, validateSubject(identity.Status.Sub, field.NewPath("status", "sub"))...)
}

// ValidateWorkloadIdentityUpdate checks a WorkloadIdentity that replaces another.
func ValidateWorkloadIdentityUpdate(identity, old *v1alpha1.WorkloadIdentity) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&identity.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	errs = append(errs, rules.Immutable(identity.Spec.TargetSystem.Type, old.Spec.TargetSystem.Type,
		field.NewPath("spec", "targetSystem", "type"))...)
	errs = append(errs, rules.Immutable(identity.Status.Sub, old.Status.Sub, field.NewPath("status", "sub"))...)
	return append(errs, ValidateWorkloadIdentity(identity)...)
}

// validateSubject checks the subject of the tokens, which the API server computes.
func validateSubject(subject string, path *field.Path) field.ErrorList {
	errs := rules.Required(subject, path)
	if len(subject) > maxSubject {
		errs = append(errs, field.Invalid(path, subject,
			fmt.Sprintf("must be no more than %d characters: the names of the namespace and the object are too long", maxSubject)))
	}
	for _, char := range []byte(subject) {
		if char > 127 {
			return append(errs, field.Invalid(path, subject, "must have ASCII characters only"))
		}
	}
	return errs
}
