// Package managedseed is an admission plugin of the garden's API. The Seed of a ManagedSeed takes over what its Shoot says, and the
// Shoot is fit to be a Seed.
package managedseed

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/admission"
	"github.com/trellis-k8s/trellis/pkg/admission/seedvalidator"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	seedmanagementv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// Plugin is the plugin.
var Plugin = admission.Plugin{
	Name: "ManagedSeed",
	Rules: []admission.Rule{{
		Resource: seedmanagementv1alpha1.Resource("managedseeds"), Operations: admission.OnCreateOrUpdate,
		Admit: admission.On(admit), Validate: admission.On(validate),
	}},
}

// The fields of the object.
var (
	shootField  = field.NewPath("spec", "shoot", "name")
	configField = field.NewPath("spec", "gardenlet", "config")
	seedField   = configField.Child("seedConfig", "spec")
)

// skips reports whether a request changes nothing that depends on the Shoot. Validation reports a missing Shoot.
func skips(seed, old *seedmanagementv1alpha1.ManagedSeed) bool {
	return seed.DeletionTimestamp != nil || seed.Spec.Shoot == nil || old != nil && equality.Semantic.DeepEqual(seed.Spec, old.Spec)
}

func admit(ctx context.Context, _ *admission.Request, garden *admission.Garden, seed, old *seedmanagementv1alpha1.ManagedSeed) error {
	if skips(seed, old) {
		return nil
	}
	shoot := &gardencorev1beta1.Shoot{}
	found, err := garden.ReadLive(ctx, seed.Namespace, seed.Spec.Shoot.Name, shoot)
	if err != nil || !found || domainOf(shoot) == "" {
		return err // without an error, validation says what is wrong
	}
	template, err := admission.SeedOf(seed)
	if err != nil {
		return nil //nolint:nilerr // validation of the object reports it with its field
	}
	values, err := defaults(ctx, garden, shoot, &template.Spec)
	if err != nil {
		return err
	}
	labelHost(seed, shoot)
	return values.writeTo(&seed.Spec.Gardenlet.Config)
}

func validate(ctx context.Context, request *admission.Request, garden *admission.Garden, seed, old *seedmanagementv1alpha1.ManagedSeed) error {
	if skips(seed, old) {
		return nil
	}
	if seed.Namespace != constants.GardenNamespace {
		return request.Invalid(field.ErrorList{field.Invalid(field.NewPath("metadata", "namespace"), seed.Namespace, "must be garden")})
	}
	shoot := &gardencorev1beta1.Shoot{}
	found, err := garden.ReadLive(ctx, seed.Namespace, seed.Spec.Shoot.Name, shoot)
	if err != nil {
		return err
	}
	if !found {
		return request.Invalid(field.ErrorList{field.Invalid(shootField, seed.Spec.Shoot.Name, "the Shoot does not exist in the namespace garden")})
	}
	template, err := admission.SeedOf(seed)
	if err != nil {
		return request.Invalid(field.ErrorList{field.Invalid(configField, field.OmitValueType{}, err.Error())})
	}
	if old == nil {
		other, err := otherSeedOf(ctx, garden, seed)
		if err != nil {
			return err
		}
		if problem := unfit(shoot, other); problem != "" {
			return request.Invalid(field.ErrorList{field.Invalid(shootField, shoot.Name, problem)})
		}
		return request.Invalid(contradictions(&template.Spec, nil, shoot))
	}
	return validateUpdate(ctx, request, garden, &template.Spec, old, shoot)
}

func validateUpdate(
	ctx context.Context, request *admission.Request, garden *admission.Garden, spec *gardencorev1beta1.SeedSpec, old *seedmanagementv1alpha1.ManagedSeed,
	shoot *gardencorev1beta1.Shoot,
) error {
	before, err := admission.SeedOf(old)
	if err != nil {
		return request.Invalid(contradictions(spec, nil, shoot)) // what was unreadable is new
	}
	errs := contradictions(spec, &before.Spec, shoot)
	if err := seedvalidator.CheckUpdate(ctx, garden, old.Name, spec, &before.Spec); err != nil {
		if status := apierrors.APIStatus(nil); errors.As(err, &status) {
			return err
		}
		errs = append(errs, field.Forbidden(seedField, err.Error()))
	}
	return request.Invalid(errs)
}

// otherSeedOf returns the name of another ManagedSeed with the same Shoot; empty if there is none. It reads live, because two
// Seeds in one cluster would replace each other's components.
func otherSeedOf(ctx context.Context, garden *admission.Garden, seed *seedmanagementv1alpha1.ManagedSeed) (string, error) {
	list := &seedmanagementv1alpha1.ManagedSeedList{}
	if err := garden.ListLive(ctx, list, seed.Namespace); err != nil {
		return "", err
	}
	for _, other := range list.Items {
		if other.Name != seed.Name && other.Spec.Shoot != nil && other.Spec.Shoot.Name == seed.Spec.Shoot.Name {
			return other.Name, nil
		}
	}
	return "", nil
}

// unfit returns why a Shoot cannot be a Seed; empty if it can.
func unfit(shoot *gardencorev1beta1.Shoot, other string) string {
	switch {
	case domainOf(shoot) == "":
		return "the Shoot has no domain: set spec.dns.domain"
	case len(shoot.Spec.Provider.Workers) == 0:
		return "the Shoot has no nodes"
	case admission.NginxEnabled(&shoot.Spec):
		return "the Shoot has the addon nginxIngress: switch it off, because a Seed has an ingress controller of its own"
	case !admission.AutoscalerEnabled(&shoot.Spec):
		return "the Shoot has no vertical pod autoscaler: set spec.kubernetes.verticalPodAutoscaler.enabled to true"
	case other != "":
		return fmt.Sprintf("the Shoot is already the Seed of the ManagedSeed %q", other)
	default:
		return ""
	}
}

func domainOf(shoot *gardencorev1beta1.Shoot) string {
	if shoot.Spec.DNS == nil || shoot.Spec.DNS.Domain == nil {
		return ""
	}
	return *shoot.Spec.DNS.Domain
}
