// Package clusteropenidconnectpreset is an admission plugin of the garden's API. A new Shoot without a configuration of OpenID Connect takes
// over that of a preset of the garden which selects it and its Project.
package clusteropenidconnectpreset

import (
	"context"
	"fmt"

	"github.com/trellis-k8s/trellis/pkg/admission"
	"github.com/trellis-k8s/trellis/pkg/admission/openidconnectpreset"
)

// Plugin is the plugin. It runs after that for the presets of Projects, which come first.
var Plugin = admission.Plugin{Name: "ClusterOpenIDConnectPreset", Rules: openidconnectpreset.OnNewShoots(ofGarden)}

// ofGarden returns the presets that select the Project of a namespace.
func ofGarden(ctx context.Context, garden *admission.Garden, namespace string) ([]openidconnectpreset.Preset, error) {
	found, err := garden.ClusterOIDCPresets.By(ctx, admission.ClusterOIDCPresetsAll, "")
	if err != nil || len(found) == 0 {
		return nil, err
	}
	project, err := garden.ProjectOf(ctx, namespace)
	if err != nil || project == nil {
		return nil, err // another plugin refuses Shoots without a Project
	}
	var presets []openidconnectpreset.Preset
	for _, one := range found {
		name := "ClusterOpenIDConnectPreset " + one.Name
		selected, err := openidconnectpreset.Selects(one.Spec.ProjectSelector, project.Labels)
		if err != nil {
			return nil, fmt.Errorf("spec.projectSelector of the %s: %w", name, err)
		}
		if selected {
			presets = append(presets, openidconnectpreset.Preset{Name: name, Spec: &one.Spec.OpenIDConnectPresetSpec})
		}
	}
	return presets, nil
}
