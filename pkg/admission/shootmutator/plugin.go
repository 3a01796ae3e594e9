// Package shootmutator is an admission plugin of the garden's API. It completes Shoots: with versions of Kubernetes and machine images
// of their CloudProfile, with the networks of their Seed, and with the tasks that a change needs.
package shootmutator

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/admission"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// Plugin is the plugin.
var Plugin = admission.Plugin{
	Name: "ShootMutator",
	Rules: []admission.Rule{
		{Resource: gardencorev1beta1.Resource("shoots"), Operations: admission.OnCreate, Admit: admission.On(create)},
		{Resource: gardencorev1beta1.Resource("shoots"), Operations: admission.OnUpdate, Admit: admission.On(update)},
		{
			Resource: gardencorev1beta1.Resource("shoots"), Operations: admission.OnUpdate, Subresources: []string{"binding"},
			Admit: admission.On(bind),
		},
	},
}

func create(ctx context.Context, request *admission.Request, garden *admission.Garden, shoot, _ *gardencorev1beta1.Shoot) error {
	if shoot.Spec.CloudProfile != nil && ptr.Deref(shoot.Spec.CloudProfileName, "") != "" && !request.Again {
		return errors.New("spec.cloudProfileName is deprecated, and must not be set together with spec.cloudProfile: remove it")
	}
	annotate(shoot, constants.AnnotationGardenCreatedBy, request.User.GetName())
	addTasks(shoot, tasksOfCreation...)
	setRotationPeriod(&shoot.Spec)
	if err := inheritNetworks(ctx, garden, shoot); err != nil {
		return err
	}
	profile, err := garden.ProfileOf(ctx, request.Namespace, &shoot.Spec)
	if err != nil {
		return err
	}
	return admission.Forbidden(complete(&shoot.Spec, nil, profile.Spec, garden.Now()))
}

func update(ctx context.Context, request *admission.Request, garden *admission.Garden, shoot, old *gardencorev1beta1.Shoot) error {
	if shoot.DeletionTimestamp != nil {
		return nil
	}
	addTasks(shoot, tasksOfUpdate(shoot, old)...)
	if needsRetry(shoot, old) {
		annotate(shoot, constants.AnnotationMaintenanceNeedsRetryOperation, "true")
	}
	if isComplete(&shoot.Spec) || equality.Semantic.DeepEqual(shoot.Spec, old.Spec) {
		return nil
	}
	profile, err := garden.ProfileOf(ctx, request.Namespace, &shoot.Spec)
	if err != nil {
		return err
	}
	return admission.Forbidden(complete(&shoot.Spec, &old.Spec, profile.Spec, garden.Now()))
}

func bind(ctx context.Context, _ *admission.Request, garden *admission.Garden, shoot, _ *gardencorev1beta1.Shoot) error {
	if shoot.DeletionTimestamp != nil {
		return nil
	}
	return inheritNetworks(ctx, garden, shoot)
}

// inheritNetworks gives a Shoot with a Seed the default networks of the Seed.
func inheritNetworks(ctx context.Context, garden *admission.Garden, shoot *gardencorev1beta1.Shoot) error {
	if shoot.Spec.SeedName == nil || hasNetworks(&shoot.Spec) {
		return nil
	}
	seed, err := garden.Seeds.Get(ctx, "", *shoot.Spec.SeedName)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("spec.seedName: the Seed %q does not exist", *shoot.Spec.SeedName)
	}
	if err != nil {
		return err
	}
	setNetworks(&shoot.Spec, seed.Spec.Networks.ShootDefaults)
	return nil
}

func annotate(shoot *gardencorev1beta1.Shoot, key, value string) {
	if shoot.Annotations == nil {
		shoot.Annotations = map[string]string{}
	}
	shoot.Annotations[key] = value
}
