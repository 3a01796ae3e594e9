package validation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/apis/internal/rules"
	"github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
)

// The bounds of spec.expirationSeconds.
const (
	leastExpirationSeconds = 600
	mostExpirationSeconds  = int64(1 << 32)
)

// ValidateTokenRequest checks a request for a token of the WorkloadIdentity with the given name and namespace.
func ValidateTokenRequest(request *v1alpha1.TokenRequest, name, namespace string) field.ErrorList {
	var errs field.ErrorList
	metadata, path := field.NewPath("metadata"), field.NewPath("spec")
	if request.Name != "" && request.Name != name {
		errs = append(errs, field.Invalid(metadata.Child("name"), request.Name, "must be the name of the WorkloadIdentity, or empty"))
	}
	if request.Namespace != "" && request.Namespace != namespace {
		errs = append(errs, field.Invalid(metadata.Child("namespace"), request.Namespace,
			"must be the namespace of the WorkloadIdentity, or empty"))
	}
	seconds := path.Child("expirationSeconds")
	switch value := request.Spec.ExpirationSeconds; {
	case value == nil:
		errs = append(errs, field.Required(seconds, "the validity of the token"))
	case *value < leastExpirationSeconds || *value > mostExpirationSeconds:
		errs = append(errs, field.Invalid(seconds, *value,
			fmt.Sprintf("must be between %d and %d", leastExpirationSeconds, mostExpirationSeconds)))
	}
	if object := request.Spec.ContextObject; object != nil {
		at := path.Child("contextObject")
		errs = append(errs, rules.Required(object.Kind, at.Child("kind"))...)
		errs = append(errs, rules.Required(object.APIVersion, at.Child("apiVersion"))...)
		errs = append(errs, rules.Required(object.Name, at.Child("name"))...)
		errs = append(errs, rules.NotEmpty(object.Namespace, at.Child("namespace"))...)
		errs = append(errs, rules.Required(string(object.UID), at.Child("uid"))...)
	}
	return errs
}
