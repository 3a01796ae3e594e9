package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/trellis-k8s/trellis/pkg/apis/internal/defaulting"
)

// RegisterDefaults makes a scheme set the defaults of this package's kinds. The API server does so, clients do not.
func RegisterDefaults(scheme *runtime.Scheme) error {
	defaulting.Register(scheme, &OpenIDConnectPreset{}, SetDefaultsOpenIDConnectPreset)
	defaulting.Register(scheme, &ClusterOpenIDConnectPreset{}, SetDefaultsClusterOpenIDConnectPreset)
	return nil
}

// SetDefaultsOpenIDConnectPreset sets the defaults of an OpenIDConnectPreset.
func SetDefaultsOpenIDConnectPreset(preset *OpenIDConnectPreset) { setDefaultsSpec(&preset.Spec) }

// SetDefaultsClusterOpenIDConnectPreset sets the defaults of a ClusterOpenIDConnectPreset.
func SetDefaultsClusterOpenIDConnectPreset(preset *ClusterOpenIDConnectPreset) {
	setDefaultsSpec(&preset.Spec.OpenIDConnectPresetSpec)
	defaulting.Pointer(&preset.Spec.ProjectSelector, metav1.LabelSelector{})
}

func setDefaultsSpec(spec *OpenIDConnectPresetSpec) {
	defaulting.Pointer(&spec.ShootSelector, metav1.LabelSelector{})
	defaulting.Pointer(&spec.Server.UsernameClaim, "sub")
	if len(spec.Server.SigningAlgs) == 0 {
		spec.Server.SigningAlgs = []string{"RS256"}
	}
}
