// Package shootvpaenabledbydefault is an admission plugin of the garden's API. New Shoots with nodes get the vertical pod
// autoscaler, unless they say something about it.
package shootvpaenabledbydefault

import (
	"context"

	"github.com/trellis-k8s/trellis/pkg/admission"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// Plugin is the plugin.
var Plugin = admission.Plugin{
	Name: "ShootVPAEnabledByDefault",
	Off:  true,
	Rules: []admission.Rule{
		{Resource: gardencorev1beta1.Resource("shoots"), Operations: admission.OnCreate, Admit: admission.On(admit)},
	},
}

func admit(_ context.Context, _ *admission.Request, _ *admission.Garden, shoot, _ *gardencorev1beta1.Shoot) error {
	if len(shoot.Spec.Provider.Workers) > 0 && shoot.Spec.Kubernetes.VerticalPodAutoscaler == nil {
		shoot.Spec.Kubernetes.VerticalPodAutoscaler = &gardencorev1beta1.VerticalPodAutoscaler{Enabled: true}
	}
	return nil
}
