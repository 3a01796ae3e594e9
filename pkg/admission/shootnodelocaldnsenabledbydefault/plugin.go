// Package shootnodelocaldnsenabledbydefault is an admission plugin of the garden's API. New Shoots with nodes get the DNS cache
// of nodes, unless they say something about it.
package shootnodelocaldnsenabledbydefault

import (
	"context"

	"github.com/trellis-k8s/trellis/pkg/admission"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// Plugin is the plugin.
var Plugin = admission.Plugin{
	Name: "ShootNodeLocalDNSEnabledByDefault",
	Off:  true,
	Rules: []admission.Rule{
		{Resource: gardencorev1beta1.Resource("shoots"), Operations: admission.OnCreate, Admit: admission.On(admit)},
	},
}

func admit(_ context.Context, _ *admission.Request, _ *admission.Garden, shoot, _ *gardencorev1beta1.Shoot) error {
	if len(shoot.Spec.Provider.Workers) == 0 {
		return nil
	}
	if shoot.Spec.SystemComponents == nil {
		shoot.Spec.SystemComponents = &gardencorev1beta1.SystemComponents{}
	}
	if shoot.Spec.SystemComponents.NodeLocalDNS == nil {
		shoot.Spec.SystemComponents.NodeLocalDNS = &gardencorev1beta1.NodeLocalDNS{Enabled: true}
	}
	return nil
}
