package v1beta1

import (
	"github.com/trellis-k8s/trellis/pkg/apis/internal/defaulting"
)

// SetDefaultsControllerRegistration sets the defaults of a ControllerRegistration.
func SetDefaultsControllerRegistration(registration *ControllerRegistration) {
	for i := range registration.Spec.Resources {
		SetDefaultsControllerResource(&registration.Spec.Resources[i])
	}
	if registration.Spec.Deployment != nil {
		defaulting.Pointer(&registration.Spec.Deployment.Policy, ControllerDeploymentPolicyOnDemand)
	}
}

// SetDefaultsControllerResource sets the defaults of a kind and type that an extension is responsible for.
func SetDefaultsControllerResource(resource *ControllerResource) {
	defaulting.Pointer(&resource.Primary, true)
	switch resource.Kind {
	case KindSelfHostedShootExposure:
		defaulting.Pointer(&resource.ContinuousEndpointUpdate, true)
	case KindExtension:
		defaulting.Pointer(&resource.ReconcileTimeout, minutes(3))
		lifecycle := defaulting.Object(&resource.Lifecycle)
		defaulting.Pointer(&lifecycle.Reconcile, AfterKubeAPIServer)
		defaulting.Pointer(&lifecycle.Delete, BeforeKubeAPIServer)
		defaulting.Pointer(&lifecycle.Migrate, BeforeKubeAPIServer)
		if len(resource.ClusterCompatibility) == 0 {
			resource.ClusterCompatibility = []ClusterType{ClusterTypeShoot}
		}
	}
}
