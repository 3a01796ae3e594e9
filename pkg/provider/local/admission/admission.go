// Package admission validates the provider configurations of CloudProfiles and Shoots on this infrastructure before the
// garden's API server stores them. It only reads the request, see Gardener's guidelines for the validation by extensions.
package admission

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	providerlocalv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/providerlocal/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/providerlocal/validation"
	extensionvalidation "github.com/trellis-k8s/trellis/pkg/extension/validation"
	"github.com/trellis-k8s/trellis/pkg/extension/webhook"
	"github.com/trellis-k8s/trellis/pkg/provider/local"
)

// Webhooks returns the webhooks for the garden's API server. They are called when an object on this infrastructure is
// created or its spec changes.
func Webhooks() []webhook.Webhook {
	rules := func(resource string) []admissionregistrationv1.RuleWithOperations {
		return []admissionregistrationv1.RuleWithOperations{webhook.Writes(gardencorev1beta1.GroupName, "v1beta1", resource)}
	}
	return []webhook.Webhook{
		{
			Name: "cloudprofiles", Validating: true, Rules: rules("cloudprofiles"),
			MatchConditions: extensionvalidation.MatchConditions("spec.type", local.Type),
			Handler: extensionvalidation.Handler(
				func() *gardencorev1beta1.CloudProfile { return &gardencorev1beta1.CloudProfile{} }, checkCloudProfile,
			),
		},
		{
			Name: "shoots", Validating: true, Rules: rules("shoots"),
			MatchConditions: extensionvalidation.MatchConditions("spec.provider.type", local.Type),
			Handler:         extensionvalidation.Handler(func() *gardencorev1beta1.Shoot { return &gardencorev1beta1.Shoot{} }, checkShoot),
		},
	}
}

// checkCloudProfile validates the providerConfig of a CloudProfile.
func checkCloudProfile(_ context.Context, profile, _ *gardencorev1beta1.CloudProfile) field.ErrorList {
	path := field.NewPath("spec", "providerConfig")
	if profile.Spec.Type != local.Type {
		return nil
	}
	config, errs := read[providerlocalv1alpha1.CloudProfileConfig](profile.Spec.ProviderConfig, path)
	if len(errs) > 0 {
		return errs
	}
	if config == nil {
		return field.ErrorList{field.Required(path, "must contain the container images of the machine images")}
	}
	return validation.ValidateCloudProfileConfig(config, profile.Spec.MachineImages, path)
}

// read decodes a configuration strictly. It returns nil for an empty one.
func read[T any, P interface {
	*T
	runtime.Object
}](raw *runtime.RawExtension, path *field.Path) (P, field.ErrorList) {
	config, err := providerlocalv1alpha1.Decode[T, P](raw)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
	}
	return config, nil
}

// checkShoot validates the configurations of a Shoot for its infrastructure, control plane and worker pools, and for its
// network if it has the type of this extension.
func checkShoot(_ context.Context, shoot, old *gardencorev1beta1.Shoot) field.ErrorList {
	if shoot.Spec.Provider.Type != local.Type {
		return nil
	}
	provider := field.NewPath("spec", "provider")
	errs := checkInfrastructure(shoot, old, provider.Child("infrastructureConfig"))
	_, more := read[providerlocalv1alpha1.ControlPlaneConfig](shoot.Spec.Provider.ControlPlaneConfig, provider.Child("controlPlaneConfig"))
	errs = append(errs, more...)
	if networking := shoot.Spec.Networking; networking != nil && ptr.Deref(networking.Type, "") == local.Type {
		_, more := read[providerlocalv1alpha1.NetworkConfig](networking.ProviderConfig, field.NewPath("spec", "networking", "providerConfig"))
		errs = append(errs, more...)
	}
	workers := provider.Child("workers")
	for i, worker := range shoot.Spec.Provider.Workers {
		path := workers.Index(i).Child("providerConfig")
		config, more := read[providerlocalv1alpha1.WorkerConfig](worker.ProviderConfig, path)
		errs = append(errs, more...)
		if config != nil {
			errs = append(errs, validation.ValidateWorkerConfig(config, path)...)
		}
	}
	return append(errs, validation.ValidateWorkers(shoot.Spec.Provider.Workers, workers)...)
}

// checkInfrastructure validates the infrastructureConfig of a Shoot.
func checkInfrastructure(shoot, old *gardencorev1beta1.Shoot, path *field.Path) field.ErrorList {
	config, errs := read[providerlocalv1alpha1.InfrastructureConfig](shoot.Spec.Provider.InfrastructureConfig, path)
	if len(errs) > 0 {
		return errs
	}
	if config != nil {
		var pods, services string
		if networking := shoot.Spec.Networking; networking != nil {
			pods, services = ptr.Deref(networking.Pods, ""), ptr.Deref(networking.Services, "")
		}
		errs = validation.ValidateInfrastructureConfig(config, pods, services, path)
	}
	if old == nil {
		return errs
	}
	before, err := providerlocalv1alpha1.Decode[providerlocalv1alpha1.InfrastructureConfig](old.Spec.Provider.InfrastructureConfig)
	if err != nil {
		return errs // the old configuration is invalid, so it cannot be compared
	}
	return append(errs, validation.ValidateInfrastructureConfigUpdate(config, before, path)...)
}
