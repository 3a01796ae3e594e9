// Package resourcereferencemanager is an admission plugin of the garden's API. What an object refers to exists, and its user may
// read it. What others use is not removed.
package resourcereferencemanager

import (
	"github.com/trellis-k8s/trellis/pkg/admission"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// Plugin is the plugin. References that an update does not change are not judged, and neither are objects that are being deleted.
var Plugin = admission.Plugin{
	Name: "ResourceReferenceManager",
	Rules: []admission.Rule{
		rule("backupbuckets", admission.On(validateBucket)),
		{Resource: gardencorev1beta1.Resource("backupbuckets"), Operations: admission.OnDelete, Validate: admission.On(validateBucketDeletion)},
		rule("backupentries", admission.On(validateEntry)),
		{Resource: gardencorev1beta1.Resource("cloudprofiles"), Operations: admission.OnUpdate, Validate: admission.On(validateProfile)},
		rule("controllerregistrations", admission.On(validateRegistration)),
		{Resource: gardencorev1beta1.Resource("namespacedcloudprofiles"), Operations: admission.OnUpdate, Validate: admission.On(validateNamespacedProfile)},
		rule("projects", admission.On(validateProject)),
		rule("secretbindings", admission.On(validateSecretBinding)),
		rule("seeds", admission.On(validateSeed)),
		rule("shoots", admission.On(validateShoot)),
		{Resource: securityv1alpha1.Resource("credentialsbindings"), Operations: admission.OnCreateOrUpdate, Validate: admission.On(validateCredentialsBinding)},
		{Resource: seedmanagementv1alpha1.Resource("gardenlets"), Operations: admission.OnCreate, Validate: admission.On(validateGardenlet)},
		{Resource: seedmanagementv1alpha1.Resource("managedseeds"), Operations: admission.OnCreate, Validate: admission.On(validateManagedSeed)},
	},
}

func rule(resource string, validate admission.Handler) admission.Rule {
	return admission.Rule{Resource: gardencorev1beta1.Resource(resource), Operations: admission.OnCreateOrUpdate, Validate: validate}
}
