package v1beta1

import (
	"k8s.io/apimachinery/pkg/runtime"
)

// RegisterDefaults makes a scheme set the defaults of this package's kinds. The API server does so, clients do not.
func RegisterDefaults(scheme *runtime.Scheme) error {
	register(scheme, &CloudProfile{}, SetDefaultsCloudProfile)
	register(scheme, &ControllerRegistration{}, SetDefaultsControllerRegistration)
	register(scheme, &NamespacedCloudProfile{}, SetDefaultsNamespacedCloudProfile)
	register(scheme, &Project{}, SetDefaultsProject)
	register(scheme, &SecretBinding{}, SetDefaultsSecretBinding)
	register(scheme, &Seed{}, SetDefaultsSeed)
	register(scheme, &Shoot{}, SetDefaultsShoot)
	return nil
}

func register[T runtime.Object](scheme *runtime.Scheme, object T, set func(T)) {
	scheme.AddTypeDefaultingFunc(object, func(object any) {
		if typed, is := object.(T); is {
			set(typed)
		}
	})
}
