package v1beta1

import (
	"github.com/trellis-k8s/trellis/pkg/apis/internal/defaulting"
)

// SetDefaultsSecretBinding lets references without a namespace refer to that of the SecretBinding.
func SetDefaultsSecretBinding(binding *SecretBinding) {
	defaulting.Value(&binding.SecretRef.Namespace, binding.Namespace)
	for i := range binding.Quotas {
		defaulting.Value(&binding.Quotas[i].Namespace, binding.Namespace)
	}
}
