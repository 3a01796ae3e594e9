// Package validation checks the requests of authentication.gardener.cloud/v1alpha1 after their defaults are set. The rules
// are Gardener's.
package validation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/apis/authentication/v1alpha1"
)

// The bounds of spec.expirationSeconds.
const (
	leastExpirationSeconds = 600
	mostExpirationSeconds  = int64(1<<32 - 1)
)

// ValidateKubeconfigRequest checks the spec of an AdminKubeconfigRequest or a ViewerKubeconfigRequest.
func ValidateKubeconfigRequest(spec *v1alpha1.KubeconfigRequestSpec) field.ErrorList {
	path := field.NewPath("spec", "expirationSeconds")
	switch seconds := spec.ExpirationSeconds; {
	case seconds == nil:
		return field.ErrorList{field.Required(path, "the validity of the kubeconfig")}
	case *seconds < leastExpirationSeconds || *seconds > mostExpirationSeconds:
		return field.ErrorList{field.Invalid(path, *seconds,
			fmt.Sprintf("must be between %d and %d", leastExpirationSeconds, mostExpirationSeconds))}
	}
	return nil
}
