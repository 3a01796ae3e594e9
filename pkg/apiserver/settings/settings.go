// Package settings has the kinds of the group settings.gardener.cloud as the API server serves them.
package settings

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/trellis-k8s/trellis/pkg/apis/served"
	settingsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/settings/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/settings/validation"
	"github.com/trellis-k8s/trellis/pkg/apiserver/registry"
)

type (
	clusterPreset = *settingsv1alpha1.ClusterOpenIDConnectPreset
	preset        = *settingsv1alpha1.OpenIDConnectPreset
)

// Kinds returns the kinds of the group.
func Kinds() []registry.Served {
	return []registry.Served{clusterPresets(), presets()}
}

func resource(kind string) served.Resource {
	return served.Of(settingsv1alpha1.SchemeGroupVersion.WithKind(kind))
}

func clusterPresets() *registry.Kind[clusterPreset] {
	return &registry.Kind[clusterPreset]{
		Resource: resource("ClusterOpenIDConnectPreset"),
		New:      func() clusterPreset { return &settingsv1alpha1.ClusterOpenIDConnectPreset{} },
		NewList:  func() runtime.Object { return &settingsv1alpha1.ClusterOpenIDConnectPresetList{} },
		Columns: []registry.Column[clusterPreset]{
			{Name: "Issuer", Description: "URL of the issuer.", Value: func(p clusterPreset) any { return p.Spec.Server.IssuerURL }},
			{Name: "Project-Selector", Description: "Labels of the Projects.", Value: func(p clusterPreset) any {
				return metav1.FormatLabelSelector(p.Spec.ProjectSelector)
			}},
			{Name: "Shoot-Selector", Description: "Labels of the Shoots.", Value: func(p clusterPreset) any {
				return metav1.FormatLabelSelector(p.Spec.ShootSelector)
			}},
		},
		Validate:       validation.ValidateClusterOpenIDConnectPreset,
		ValidateUpdate: validation.ValidateClusterOpenIDConnectPresetUpdate,
	}
}

func presets() *registry.Kind[preset] {
	return &registry.Kind[preset]{
		Resource: resource("OpenIDConnectPreset"),
		New:      func() preset { return &settingsv1alpha1.OpenIDConnectPreset{} },
		NewList:  func() runtime.Object { return &settingsv1alpha1.OpenIDConnectPresetList{} },
		Columns: []registry.Column[preset]{
			{Name: "Issuer", Description: "URL of the issuer.", Value: func(p preset) any { return p.Spec.Server.IssuerURL }},
			{Name: "Shoot-Selector", Description: "Labels of the Shoots.", Value: func(p preset) any {
				return metav1.FormatLabelSelector(p.Spec.ShootSelector)
			}},
		},
		Validate:       validation.ValidateOpenIDConnectPreset,
		ValidateUpdate: validation.ValidateOpenIDConnectPresetUpdate,
	}
}
