// Package openidconnectpreset is an admission plugin of the garden's API. A new Shoot without a configuration of OpenID Connect takes over
// that of a preset of its Project which selects it.
package openidconnectpreset

import (
	"context"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/admission"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	settingsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/settings/v1alpha1"
)

// Plugin is the plugin.
var Plugin = admission.Plugin{Name: "OpenIDConnectPreset", Rules: OnNewShoots(ofProject)}

// Preset is a preset that may apply to a Shoot.
type Preset struct {
	// Name is the kind and the name of the preset, for messages.
	Name string
	Spec *settingsv1alpha1.OpenIDConnectPresetSpec
}

// Find returns the presets that may apply to the Shoots in a namespace.
type Find func(ctx context.Context, garden *admission.Garden, namespace string) ([]Preset, error)

// OnNewShoots returns the rules of a plugin that applies presets to new Shoots.
func OnNewShoots(find Find) []admission.Rule {
	admit := func(ctx context.Context, request *admission.Request, garden *admission.Garden, shoot, _ *gardencorev1beta1.Shoot) error {
		if server := shoot.Spec.Kubernetes.KubeAPIServer; server != nil && (server.OIDCConfig != nil || server.StructuredAuthentication != nil) {
			return nil
		}
		presets, err := find(ctx, garden, request.Namespace)
		if err != nil {
			return err
		}
		chosen, err := choose(presets, shoot.Labels)
		if err != nil || chosen == nil {
			return err
		}
		if shoot.Spec.Kubernetes.KubeAPIServer == nil {
			shoot.Spec.Kubernetes.KubeAPIServer = &gardencorev1beta1.KubeAPIServerConfig{}
		}
		shoot.Spec.Kubernetes.KubeAPIServer.OIDCConfig = configOf(&chosen.Server)
		return nil
	}
	return []admission.Rule{{Resource: gardencorev1beta1.Resource("shoots"), Operations: admission.OnCreate, Admit: admission.On(admit)}}
}

func ofProject(ctx context.Context, garden *admission.Garden, namespace string) ([]Preset, error) {
	found, err := garden.OIDCPresets.By(ctx, admission.OIDCPresetsByNamespace, namespace)
	presets := make([]Preset, 0, len(found))
	for _, one := range found {
		presets = append(presets, Preset{"OpenIDConnectPreset " + one.Name, &one.Spec})
	}
	return presets, err
}

// choose returns the preset with the highest weight among those that select a Shoot by its labels, and among those with the same weight
// the one with the last name; nil if there is none.
func choose(presets []Preset, shoot map[string]string) (*settingsv1alpha1.OpenIDConnectPresetSpec, error) {
	var chosen *Preset
	for i := range presets {
		one := &presets[i]
		selected, err := Selects(one.Spec.ShootSelector, shoot)
		if err != nil {
			return nil, fmt.Errorf("spec.shootSelector of the %s: %w", one.Name, err)
		}
		if selected && (chosen == nil || one.Spec.Weight > chosen.Spec.Weight || one.Spec.Weight == chosen.Spec.Weight && one.Name > chosen.Name) {
			chosen = one
		}
	}
	if chosen == nil {
		return nil, nil
	}
	return chosen.Spec, nil
}

// Selects reports whether a selector matches labels. nil selects all, because it is the default.
func Selects(selector *metav1.LabelSelector, of map[string]string) (bool, error) {
	if selector == nil {
		return true, nil
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && parsed.Matches(labels.Set(of)), err
}

func configOf(server *settingsv1alpha1.KubeAPIServerOpenIDConnect) *gardencorev1beta1.OIDCConfig {
	return &gardencorev1beta1.OIDCConfig{
		CABundle: server.CABundle, ClientID: ptr.To(server.ClientID), IssuerURL: ptr.To(server.IssuerURL),
		GroupsClaim: server.GroupsClaim, GroupsPrefix: server.GroupsPrefix, RequiredClaims: maps.Clone(server.RequiredClaims),
		SigningAlgs: slices.Clone(server.SigningAlgs), UsernameClaim: server.UsernameClaim, UsernamePrefix: server.UsernamePrefix,
	}
}
