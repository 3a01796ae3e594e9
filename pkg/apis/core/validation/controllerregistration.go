package validation

import (
	"slices"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/internal/rules"
)

// extensionKinds are the kinds that an extension can be responsible for.
var extensionKinds = []string{
	v1beta1.KindBackupBucket, v1beta1.KindBackupEntry, v1beta1.KindBastion, v1beta1.KindContainerRuntime, v1beta1.KindControlPlane,
	v1beta1.KindDNSRecord, v1beta1.KindExtension, v1beta1.KindInfrastructure, v1beta1.KindNetwork, v1beta1.KindOperatingSystemConfig,
	v1beta1.KindSelfHostedShootExposure, v1beta1.KindWorker,
}

// ValidateControllerRegistration checks a ControllerRegistration.
func ValidateControllerRegistration(registration *v1beta1.ControllerRegistration) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&registration.ObjectMeta, false, labelName, field.NewPath("metadata"))
	path, resources := field.NewPath("spec"), registration.Spec.Resources
	errs = append(errs, validateControllerResources(resources, clustersOfRegistrations, path.Child("resources"))...)
	deployment, at := registration.Spec.Deployment, path.Child("deployment")
	if deployment == nil {
		return errs
	}
	errs = append(errs, optionalOneOf(deployment.Policy, at.Child("policy"), v1beta1.ControllerDeploymentPolicyOnDemand,
		v1beta1.ControllerDeploymentPolicyAlways, v1beta1.ControllerDeploymentPolicyAlwaysExceptNoShoots)...)
	primary := slices.ContainsFunc(resources, isPrimary)
	errs = append(errs, forbidden(deployment.SeedSelector != nil && primary, at.Child("seedSelector"),
		"the extension has primary resources, which all Seeds may need")...)
	errs = append(errs, selector(deployment.SeedSelector, at.Child("seedSelector"))...)
	errs = append(errs, forbidden(len(deployment.DeploymentRefs) > 1, at.Child("deploymentRefs"), "there can be one reference only")...)
	for i, ref := range deployment.DeploymentRefs {
		errs = append(errs, required(ref.Name, at.Child("deploymentRefs").Index(i).Child("name"))...)
	}
	return errs
}

// ValidateControllerRegistrationUpdate checks a ControllerRegistration that replaces another.
func ValidateControllerRegistrationUpdate(registration, old *v1beta1.ControllerRegistration) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&registration.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	path := field.NewPath("spec")
	errs = append(errs, rules.UnchangedInDeletion("controller registration", registration, registration.Spec, old.Spec, path)...)
	errs = append(errs, ValidateControllerResourcesUpdate(registration.Spec.Resources, old.Spec.Resources, path.Child("resources"))...)
	return append(errs, ValidateControllerRegistration(registration)...)
}

// clustersOfRegistrations are the kinds of clusters that a ControllerRegistration may name.
var clustersOfRegistrations = []v1beta1.ClusterType{v1beta1.ClusterTypeShoot, v1beta1.ClusterTypeSeed}

func isPrimary(resource v1beta1.ControllerResource) bool { return ptr.Deref(resource.Primary, true) }

func validateControllerResources(resources []v1beta1.ControllerResource, clusters []v1beta1.ClusterType, path *field.Path) field.ErrorList {
	errs := unique(resources, path, "", func(resource v1beta1.ControllerResource) string { return resource.Kind + "/" + resource.Type })
	for i := range resources {
		resource, at := &resources[i], path.Index(i)
		errs = append(errs, oneOf(resource.Kind, at.Child("kind"), extensionKinds...)...)
		errs = append(errs, required(resource.Type, at.Child("type"))...)
		errs = append(errs, forbidden(resource.ContinuousEndpointUpdate != nil && resource.Kind != v1beta1.KindSelfHostedShootExposure,
			at.Child("continuousEndpointUpdate"), "is supported for the kind SelfHostedShootExposure only")...)
		if resource.Kind == v1beta1.KindExtension {
			errs = append(errs, validateExtensionResource(resource, clusters, at)...)
			continue
		}
		for name, set := range map[string]bool{
			"reconcileTimeout": resource.ReconcileTimeout != nil, "workerlessSupported": resource.WorkerlessSupported != nil,
			"lifecycle": resource.Lifecycle != nil, "autoEnable": len(resource.AutoEnable) > 0,
			"clusterCompatibility": len(resource.ClusterCompatibility) > 0,
		} {
			errs = append(errs, forbidden(set, at.Child(name), "is supported for the kind Extension only")...)
		}
	}
	return errs
}

// validateExtensionResource checks the fields that only a resource of the kind Extension may have.
func validateExtensionResource(resource *v1beta1.ControllerResource, clusters []v1beta1.ClusterType, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, uniqueValues(resource.ClusterCompatibility, path.Child("clusterCompatibility"))...)
	errs = append(errs, uniqueValues(resource.AutoEnable, path.Child("autoEnable"))...)
	for i, cluster := range resource.ClusterCompatibility {
		errs = append(errs, oneOf(cluster, path.Child("clusterCompatibility").Index(i), clusters...)...)
	}
	for i, cluster := range resource.AutoEnable {
		at := path.Child("autoEnable").Index(i)
		errs = append(errs, oneOf(cluster, at, clusters...)...)
		errs = append(errs, forbidden(slices.Contains(clusters, cluster) && !slices.Contains(resource.ClusterCompatibility, cluster),
			at, "is not in clusterCompatibility")...)
	}
	if lifecycle := resource.Lifecycle; lifecycle != nil {
		at, before, after := path.Child("lifecycle"), v1beta1.BeforeKubeAPIServer, v1beta1.AfterKubeAPIServer
		errs = append(errs, optionalOneOf(lifecycle.Reconcile, at.Child("reconcile"), before, after, v1beta1.AfterWorker)...)
		errs = append(errs, optionalOneOf(lifecycle.Delete, at.Child("delete"), before, after)...)
		errs = append(errs, optionalOneOf(lifecycle.Migrate, at.Child("migrate"), before, after)...)
	}
	return errs
}
