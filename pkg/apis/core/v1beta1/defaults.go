package v1beta1

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/trellis-k8s/trellis/pkg/apis/internal/defaulting"
)

// RegisterDefaults makes a scheme set the defaults of this package's kinds. The API server does so, clients do not.
func RegisterDefaults(scheme *runtime.Scheme) error {
	defaulting.Register(scheme, &CloudProfile{}, SetDefaultsCloudProfile)
	defaulting.Register(scheme, &ControllerRegistration{}, SetDefaultsControllerRegistration)
	defaulting.Register(scheme, &NamespacedCloudProfile{}, SetDefaultsNamespacedCloudProfile)
	defaulting.Register(scheme, &Project{}, SetDefaultsProject)
	defaulting.Register(scheme, &SecretBinding{}, SetDefaultsSecretBinding)
	defaulting.Register(scheme, &Seed{}, SetDefaultsSeed)
	defaulting.Register(scheme, &Shoot{}, SetDefaultsShoot)
	return nil
}
