package extension

import (
	"sigs.k8s.io/controller-runtime/pkg/manager"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
)

// AddToManager adds the controller of one kind and type. The manager's scheme needs [AddToScheme] and the kinds of Kubernetes. Its client
// reads from the manager's cache.
//
//	err := extension.AddToManager(mgr, infrastructureActuator, extension.Options{Type: "local"})
func AddToManager[T extensionsv1alpha1.Object](mgr manager.Manager, actuator Actuator[T], options Options) error {
	panic("not implemented yet")
}
