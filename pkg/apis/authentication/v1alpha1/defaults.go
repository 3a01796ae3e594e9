package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/trellis-k8s/trellis/pkg/apis/internal/defaulting"
)

// defaultExpirationSeconds is the default validity of a kubeconfig.
const defaultExpirationSeconds = 3600

// RegisterDefaults makes a scheme set the defaults of this package's kinds. The API server does so, clients do not.
func RegisterDefaults(scheme *runtime.Scheme) error {
	defaulting.Register(scheme, &AdminKubeconfigRequest{}, SetDefaultsAdminKubeconfigRequest)
	defaulting.Register(scheme, &ViewerKubeconfigRequest{}, SetDefaultsViewerKubeconfigRequest)
	return nil
}

// SetDefaultsAdminKubeconfigRequest sets the validity of the kubeconfig.
func SetDefaultsAdminKubeconfigRequest(request *AdminKubeconfigRequest) {
	defaulting.Pointer(&request.Spec.ExpirationSeconds, defaultExpirationSeconds)
}

// SetDefaultsViewerKubeconfigRequest sets the validity of the kubeconfig.
func SetDefaultsViewerKubeconfigRequest(request *ViewerKubeconfigRequest) {
	defaulting.Pointer(&request.Spec.ExpirationSeconds, defaultExpirationSeconds)
}
