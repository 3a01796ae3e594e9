// Package managedseedshoot is an admission plugin of the garden's API. A ManagedSeed cannot be deleted while Shoots use its Seed.
package managedseedshoot

import (
	"context"
	"fmt"

	"github.com/trellis-k8s/trellis/pkg/admission"
	seedmanagementv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// Plugin is the plugin.
var Plugin = admission.Plugin{
	Name: "ManagedSeedShoot",
	Rules: []admission.Rule{
		{Resource: seedmanagementv1alpha1.Resource("managedseeds"), Operations: admission.OnDelete, Validate: admission.On(validate)},
	},
}

func validate(ctx context.Context, _ *admission.Request, garden *admission.Garden, _, managed *seedmanagementv1alpha1.ManagedSeed) error {
	shoots, err := garden.ShootsOn(ctx, managed.Name)
	if err != nil || len(shoots) == 0 {
		return err
	}
	return fmt.Errorf("%d Shoots use the Seed %q, such as %s/%s: delete or move them first", len(shoots), managed.Name, shoots[0].Namespace, shoots[0].Name)
}
