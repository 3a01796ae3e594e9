package validation

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// contextWithoutShoot returns the context of a control plane that belongs to no Shoot. The version of Kubernetes may be invalid.
func contextWithoutShoot(kubernetes string, workerless bool) *shootContext {
	c := &shootContext{workerless: workerless}
	if parsed, err := version.ParseGeneric(kubernetes); err == nil {
		c.version = parsed
	}
	return c
}

// ValidateKubeAPIServerConfig checks the settings of an API server of a cluster without nodes, in a version of Kubernetes.
func ValidateKubeAPIServerConfig(server *v1beta1.KubeAPIServerConfig, kubernetes string, path *field.Path) field.ErrorList {
	return validateAPIServer(server, contextWithoutShoot(kubernetes, true), path)
}

// ValidateKubeControllerManagerConfig checks the settings of a kube-controller-manager in a version of Kubernetes.
func ValidateKubeControllerManagerConfig(manager *v1beta1.KubeControllerManagerConfig, kubernetes string, path *field.Path) field.ErrorList {
	spec := &v1beta1.ShootSpec{}
	spec.Kubernetes.KubeControllerManager = manager
	return validateControllerManager(spec, contextWithoutShoot(kubernetes, false), path)
}

// ValidateControllerResources checks the kinds and types that an extension is responsible for. clusters are the kinds of clusters that
// it may support.
func ValidateControllerResources(resources []v1beta1.ControllerResource, path *field.Path, clusters ...v1beta1.ClusterType) field.ErrorList {
	return validateControllerResources(resources, clusters, path)
}

// ValidateControllerResourcesUpdate checks resources that replace others: whether one is primary is immutable.
func ValidateControllerResourcesUpdate(resources, old []v1beta1.ControllerResource, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range resources {
		at := slices.IndexFunc(old, func(before v1beta1.ControllerResource) bool {
			return before.Kind == resources[i].Kind && before.Type == resources[i].Type
		})
		if at >= 0 {
			errs = append(errs, immutable(isPrimary(resources[i]), isPrimary(old[at]), path.Index(i).Child("primary"))...)
		}
	}
	return errs
}

// ValidateChartResources checks the Secrets and ConfigMaps that the values of charts may refer to.
func ValidateChartResources(resources []gardencorev1.NamedResourceReference, path *field.Path) field.ErrorList {
	return validateDeploymentResources(resources, path)
}

// ValidateChartValues checks the values of a chart in JSON, whose texts may refer only to data of the resources.
func ValidateChartValues(values []byte, resources []gardencorev1.NamedResourceReference, path *field.Path) field.ErrorList {
	names := sets.New[string]()
	for _, resource := range resources {
		names.Insert(resource.Name)
	}
	return validateTemplates(values, names, path)
}
