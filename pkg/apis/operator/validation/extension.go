package validation

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	corevalidation "github.com/trellis-k8s/trellis/pkg/apis/core/validation"
	"github.com/trellis-k8s/trellis/pkg/apis/internal/rules"
	"github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
)

// ValidateExtension checks an Extension.
func ValidateExtension(extension *v1alpha1.Extension) field.ErrorList {
	path := field.NewPath("spec")
	errs := corevalidation.ValidateControllerResources(extension.Spec.Resources, path.Child("resources"),
		corev1beta1.ClusterTypeGarden, corev1beta1.ClusterTypeSeed, corev1beta1.ClusterTypeShoot)
	deployment, at := extension.Spec.Deployment, path.Child("deployment")
	if deployment == nil {
		return append(errs, field.Required(at, "must say how the extension is deployed"))
	}
	if deployment.ExtensionDeployment == nil && deployment.AdmissionDeployment == nil {
		errs = append(errs, field.Required(at, "extension or admission is required"))
	}
	resources := chartResources(deployment.Resources)
	errs = append(errs, corevalidation.ValidateChartResources(resources, at.Child("resources"))...)
	if one, at := deployment.ExtensionDeployment, at.Child("extension"); one != nil {
		errs = append(errs, validateHelm(one.Helm, at.Child("helm"))...)
		errs = append(errs, rules.Selector(one.SeedSelector, at.Child("seedSelector"))...)
		errs = append(errs, rules.OptionalOneOf(one.Policy, at.Child("policy"), corev1beta1.ControllerDeploymentPolicyOnDemand,
			corev1beta1.ControllerDeploymentPolicyAlways, corev1beta1.ControllerDeploymentPolicyAlwaysExceptNoShoots)...)
		errs = append(errs, validateValues(one.Values, resources, at.Child("values"))...)
		errs = append(errs, validateValues(one.RuntimeClusterValues, resources, at.Child("runtimeClusterValues"))...)
	}
	if one, at := deployment.AdmissionDeployment, at.Child("admission"); one != nil {
		if one.RuntimeCluster == nil && one.VirtualCluster == nil {
			errs = append(errs, field.Required(at, "runtimeCluster or virtualCluster is required"))
		}
		if one.RuntimeCluster != nil {
			errs = append(errs, validateHelm(one.RuntimeCluster.Helm, at.Child("runtimeCluster", "helm"))...)
		}
		if one.VirtualCluster != nil {
			errs = append(errs, validateHelm(one.VirtualCluster.Helm, at.Child("virtualCluster", "helm"))...)
		}
		errs = append(errs, validateValues(one.Values, resources, at.Child("values"))...)
	}
	return errs
}

// ValidateExtensionUpdate checks an Extension that replaces another.
func ValidateExtensionUpdate(extension, old *v1alpha1.Extension) field.ErrorList {
	path := field.NewPath("spec")
	errs := rules.UnchangedInDeletion("extension", extension, extension.Spec, old.Spec, path)
	errs = append(errs, corevalidation.ValidateControllerResourcesUpdate(extension.Spec.Resources, old.Spec.Resources, path.Child("resources"))...)
	return append(errs, ValidateExtension(extension)...)
}

// validateHelm checks a chart, which must be an OCI artifact.
func validateHelm(helm *v1alpha1.ExtensionHelm, path *field.Path) field.ErrorList {
	if helm == nil {
		return nil
	}
	if helm.OCIRepository == nil {
		return field.ErrorList{field.Required(path.Child("ociRepository"), "")}
	}
	return corevalidation.ValidateOCIRepository(helm.OCIRepository, path.Child("ociRepository"))
}

func validateValues(values *apiextensionsv1.JSON, resources []gardencorev1.NamedResourceReference, path *field.Path) field.ErrorList {
	if values == nil || len(values.Raw) == 0 {
		return nil
	}
	return corevalidation.ValidateChartValues(values.Raw, resources, path)
}

// chartResources returns the resources in the form that ControllerDeployments have.
func chartResources(resources []corev1beta1.NamedResourceReference) []gardencorev1.NamedResourceReference {
	var all []gardencorev1.NamedResourceReference
	for _, resource := range resources {
		all = append(all, gardencorev1.NamedResourceReference{Name: resource.Name, ResourceRef: resource.ResourceRef})
	}
	return all
}
