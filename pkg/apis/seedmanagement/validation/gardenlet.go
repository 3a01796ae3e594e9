package validation

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/apis/core/validation"
	"github.com/trellis-k8s/trellis/pkg/apis/internal/rules"
	"github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// ValidateGardenlet checks a Gardenlet.
func ValidateGardenlet(gardenlet *v1alpha1.Gardenlet) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&gardenlet.ObjectMeta, true, apivalidation.NameIsDNSLabel, field.NewPath("metadata"))
	errs = append(errs, inGarden(gardenlet.Namespace)...)
	errs = append(errs, rules.KnownOperation(gardenlet, constants.OperationReconcile, constants.OperationRenewKubeconfig,
		constants.OperationForceRedeploy)...)
	spec, path := &gardenlet.Spec, field.NewPath("spec")
	deployment := path.Child("deployment")
	errs = append(errs, validateDeployment(&spec.Deployment.GardenletDeployment, deployment)...)
	errs = append(errs, validation.ValidateOCIRepository(&spec.Deployment.Helm.OCIRepository, deployment.Child("helm", "ociRepository"))...)
	if spec.KubeconfigSecretRef != nil {
		errs = append(errs, rules.ObjectName(spec.KubeconfigSecretRef.Name, path.Child("kubeconfigSecretRef", "name"))...)
	}
	return append(errs, validateConfiguration(spec.Config.Raw, connection{bootstrap: v1alpha1.BootstrapToken}, path.Child("config"))...)
}

// ValidateGardenletUpdate checks a Gardenlet that replaces another.
func ValidateGardenletUpdate(gardenlet, old *v1alpha1.Gardenlet) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&gardenlet.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	errs = append(errs, rules.OperationReplaced(gardenlet, old)...)
	errs = append(errs, validateSeedConfigUpdate(gardenlet.Spec.Config.Raw, old.Spec.Config.Raw, field.NewPath("spec", "config"))...)
	return append(errs, ValidateGardenlet(gardenlet)...)
}
