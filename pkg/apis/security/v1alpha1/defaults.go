package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/trellis-k8s/trellis/pkg/apis/internal/defaulting"
)

// defaultExpirationSeconds is the default validity of a token.
const defaultExpirationSeconds = 3600

// RegisterDefaults makes a scheme set the defaults of this package's kinds. The API server does so, clients do not.
func RegisterDefaults(scheme *runtime.Scheme) error {
	defaulting.Register(scheme, &CredentialsBinding{}, SetDefaultsCredentialsBinding)
	defaulting.Register(scheme, &TokenRequest{}, SetDefaultsTokenRequest)
	return nil
}

// SetDefaultsCredentialsBinding sets missing namespaces of references to the namespace of the CredentialsBinding.
func SetDefaultsCredentialsBinding(binding *CredentialsBinding) {
	defaulting.Value(&binding.CredentialsRef.Namespace, binding.Namespace)
	for i := range binding.Quotas {
		defaulting.Value(&binding.Quotas[i].Namespace, binding.Namespace)
	}
}

// SetDefaultsTokenRequest sets the validity of the token.
func SetDefaultsTokenRequest(request *TokenRequest) {
	defaulting.Pointer(&request.Spec.ExpirationSeconds, defaultExpirationSeconds)
}
