// Package seedmutator is an admission plugin of the garden's API. A Seed has a label with its own name, and one with the name of
// the Seed that hosts it, so that gardenlets can select it.
package seedmutator

import (
	"context"
	"maps"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/trellis-k8s/trellis/pkg/admission"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// Plugin is the plugin.
var Plugin = admission.Plugin{
	Name: "SeedMutator",
	Rules: []admission.Rule{
		{Resource: gardencorev1beta1.Resource("seeds"), Operations: admission.OnCreateOrUpdate, Admit: admission.On(admit)},
	},
}

func admit(ctx context.Context, _ *admission.Request, garden *admission.Garden, seed, _ *gardencorev1beta1.Seed) error {
	if seed.DeletionTimestamp != nil {
		return nil
	}
	host, err := hostOf(ctx, garden, seed.Name)
	if err != nil {
		return err
	}
	label(seed, host)
	return nil
}

// hostOf returns the name of the Seed that hosts the Shoot of a managed Seed; empty if there is none.
func hostOf(ctx context.Context, garden *admission.Garden, name string) (string, error) {
	managed, err := garden.ManagedSeeds.Get(ctx, constants.GardenNamespace, name)
	if apierrors.IsNotFound(err) || err == nil && managed.Spec.Shoot == nil {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	shoot, err := garden.Shoots.Get(ctx, constants.GardenNamespace, managed.Spec.Shoot.Name)
	if apierrors.IsNotFound(err) || err == nil && shoot.Spec.SeedName == nil {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return *shoot.Spec.SeedName, nil
}

func label(seed *gardencorev1beta1.Seed, host string) {
	maps.DeleteFunc(seed.Labels, func(key, _ string) bool { return strings.HasPrefix(key, constants.LabelPrefixSeedName) })
	if seed.Labels == nil {
		seed.Labels = map[string]string{}
	}
	for _, name := range []string{seed.Name, host} {
		if name != "" {
			seed.Labels[constants.LabelPrefixSeedName+name] = "true"
		}
	}
}
