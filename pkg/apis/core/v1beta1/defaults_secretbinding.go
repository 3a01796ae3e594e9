package v1beta1

import (
	"github.com/trellis-k8s/trellis/pkg/apis/internal/defaulting"
)

// SetDefaultsSecretBinding sets missing namespaces of references to the namespace of the SecretBinding.
func SetDefaultsSecretBinding(binding *SecretBinding) {
	defaulting.Value(&binding.SecretRef.Namespace, binding.Namespace)
	for i := range binding.Quotas {
		defaulting.Value(&binding.Quotas[i].Namespace, binding.Namespace)
	}
}
