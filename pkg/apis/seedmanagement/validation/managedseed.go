package validation

import (
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/apis/internal/rules"
	"github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// ValidateManagedSeed checks a ManagedSeed.
func ValidateManagedSeed(seed *v1alpha1.ManagedSeed) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&seed.ObjectMeta, true, apivalidation.NameIsDNSLabel, field.NewPath("metadata"))
	errs = append(errs, inGarden(seed.Namespace)...)
	errs = append(errs, rules.KnownOperation(seed, constants.OperationReconcile, constants.OperationRenewKubeconfig)...)
	path := field.NewPath("spec")
	if seed.Spec.Shoot == nil {
		errs = append(errs, field.Required(path.Child("shoot"), ""))
	} else {
		errs = append(errs, rules.ObjectName(seed.Spec.Shoot.Name, path.Child("shoot", "name"))...)
	}
	return append(errs, validateGardenletConfig(&seed.Spec.Gardenlet, path.Child("gardenlet"))...)
}

// ValidateManagedSeedUpdate checks a ManagedSeed that replaces another.
func ValidateManagedSeedUpdate(seed, old *v1alpha1.ManagedSeed) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&seed.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	errs = append(errs, rules.OperationReplaced(seed, old)...)
	path := field.NewPath("spec")
	errs = append(errs, rules.Immutable(seed.Spec.Shoot, old.Spec.Shoot, path.Child("shoot"))...)
	errs = append(errs, validateGardenletConfigUpdate(&seed.Spec.Gardenlet, &old.Spec.Gardenlet, path.Child("gardenlet"))...)
	return append(errs, ValidateManagedSeed(seed)...)
}

// inGarden returns an error if an object is not in the namespace garden.
func inGarden(namespace string) field.ErrorList {
	if namespace == "" || namespace == constants.GardenNamespace {
		return nil // the metadata's own check reports a missing namespace
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata", "namespace"), namespace, "namespace must be garden")}
}

// validateGardenletConfig checks how the gardenlet of a ManagedSeed is deployed.
func validateGardenletConfig(gardenlet *v1alpha1.GardenletConfig, path *field.Path) field.ErrorList {
	errs := rules.OptionalOneOf(gardenlet.Bootstrap, path.Child("bootstrap"),
		v1alpha1.BootstrapServiceAccount, v1alpha1.BootstrapToken, v1alpha1.BootstrapNone)
	if gardenlet.Deployment != nil {
		errs = append(errs, validateDeployment(gardenlet.Deployment, path.Child("deployment"))...)
	}
	return append(errs, validateConfiguration(gardenlet.Config.Raw, connection{
		bootstrap: ptr.Deref(gardenlet.Bootstrap, v1alpha1.BootstrapToken), merged: ptr.Deref(gardenlet.MergeWithParent, true),
	}, path.Child("config"))...)
}

func validateGardenletConfigUpdate(gardenlet, old *v1alpha1.GardenletConfig, path *field.Path) field.ErrorList {
	errs := rules.Immutable(gardenlet.Bootstrap, old.Bootstrap, path.Child("bootstrap"))
	errs = append(errs, rules.Immutable(gardenlet.MergeWithParent, old.MergeWithParent, path.Child("mergeWithParent"))...)
	return append(errs, validateSeedConfigUpdate(gardenlet.Config.Raw, old.Config.Raw, path.Child("config"))...)
}

// validateDeployment checks the settings of the Deployment of a gardenlet.
func validateDeployment(deployment *v1alpha1.GardenletDeployment, path *field.Path) field.ErrorList {
	errs := notNegative(deployment.ReplicaCount, path.Child("replicaCount"))
	errs = append(errs, notNegative(deployment.RevisionHistoryLimit, path.Child("revisionHistoryLimit"))...)
	if deployment.ServiceAccountName != nil {
		at := path.Child("serviceAccountName")
		errs = append(errs, rules.Messages(apivalidation.ValidateServiceAccountName(*deployment.ServiceAccountName, false),
			*deployment.ServiceAccountName, at)...)
	}
	errs = append(errs, metav1validation.ValidateLabels(deployment.PodLabels, path.Child("podLabels"))...)
	errs = append(errs, apivalidation.ValidateAnnotations(deployment.PodAnnotations, path.Child("podAnnotations"))...)
	image, at := deployment.Image, path.Child("image")
	if image == nil {
		return errs
	}
	for name, value := range map[string]*string{"ref": image.Ref, "repository": image.Repository, "tag": image.Tag} {
		errs = append(errs, rules.NotEmpty(value, at.Child(name))...)
		if name != "ref" && value != nil && image.Ref != nil {
			errs = append(errs, field.Forbidden(at.Child(name), "must not be set together with ref"))
		}
	}
	return append(errs, rules.OptionalOneOf(image.PullPolicy, at.Child("pullPolicy"), corev1.PullAlways, corev1.PullIfNotPresent,
		corev1.PullNever)...)
}

func notNegative(value *int32, path *field.Path) field.ErrorList {
	return apivalidation.ValidateNonnegativeField(int64(ptr.Deref(value, 0)), path)
}
