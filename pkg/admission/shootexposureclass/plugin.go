// Package shootexposureclass is an admission plugin of the garden's API. A new Shoot takes over what its ExposureClass says
// about Seeds: the selector and the tolerations.
package shootexposureclass

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/trellis-k8s/trellis/pkg/admission"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// Plugin is the plugin.
var Plugin = admission.Plugin{
	Name: "ShootExposureClass",
	Rules: []admission.Rule{
		{Resource: gardencorev1beta1.Resource("shoots"), Operations: admission.OnCreate, Admit: admission.On(admit)},
	},
}

// admit runs once: the second time, what the class adds would contradict itself.
func admit(ctx context.Context, request *admission.Request, garden *admission.Garden, shoot, _ *gardencorev1beta1.Shoot) error {
	if request.Again || shoot.Spec.ExposureClassName == nil {
		return nil
	}
	name := *shoot.Spec.ExposureClassName
	class, err := garden.ExposureClasses.Get(ctx, "", name)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("spec.exposureClassName: the ExposureClass %q does not exist", name)
	}
	if err != nil || class.Scheduling == nil {
		return err
	}
	if err := uniteSelectors(&shoot.Spec, class.Scheduling.SeedSelector); err != nil {
		return fmt.Errorf("spec.seedSelector contradicts the ExposureClass %q: %w", name, err)
	}
	if err := uniteTolerations(&shoot.Spec, class.Scheduling.Tolerations); err != nil {
		return fmt.Errorf("spec.tolerations contradict the ExposureClass %q: %w", name, err)
	}
	return nil
}

func uniteSelectors(spec *gardencorev1beta1.ShootSpec, added *gardencorev1beta1.SeedSelector) error {
	if added == nil {
		return nil
	}
	if spec.SeedSelector == nil {
		spec.SeedSelector = added.DeepCopy()
		return nil
	}
	selector := spec.SeedSelector
	for key, value := range added.MatchLabels {
		if own, found := selector.MatchLabels[key]; found && own != value {
			return fmt.Errorf("matchLabels[%s] must be %q, not %q", key, value, own)
		}
		if selector.MatchLabels == nil {
			selector.MatchLabels = map[string]string{}
		}
		selector.MatchLabels[key] = value
	}
	selector.MatchExpressions = append(selector.MatchExpressions, added.DeepCopy().MatchExpressions...)
	if len(added.ProviderTypes) > 0 {
		types := slices.Concat(selector.ProviderTypes, added.ProviderTypes)
		slices.Sort(types)
		selector.ProviderTypes = slices.Compact(types)
	}
	return nil
}

func uniteTolerations(spec *gardencorev1beta1.ShootSpec, added []gardencorev1beta1.Toleration) error {
	for _, toleration := range added {
		if slices.ContainsFunc(spec.Tolerations, func(own gardencorev1beta1.Toleration) bool { return own.Key == toleration.Key }) {
			return fmt.Errorf("both have the key %q: remove it from the Shoot", toleration.Key)
		}
	}
	spec.Tolerations = append(spec.Tolerations, added...)
	return nil
}
