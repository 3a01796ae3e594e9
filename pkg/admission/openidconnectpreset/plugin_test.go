package openidconnectpreset

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	settingsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/settings/v1alpha1"
)

// TestAllFieldsAreTakenOver checks that a Shoot gets each field of a preset, and a copy of it.
func TestAllFieldsAreTakenOver(t *testing.T) {
	t.Parallel()
	server := &settingsv1alpha1.KubeAPIServerOpenIDConnect{
		CABundle: ptr.To("ca"), ClientID: "client", GroupsClaim: ptr.To("g"), GroupsPrefix: ptr.To("g:"), IssuerURL: "https://login.example.org",
		RequiredClaims: map[string]string{"a": "b"}, SigningAlgs: []string{"ES256"}, UsernameClaim: ptr.To("email"), UsernamePrefix: ptr.To("u:"),
	}
	want := &gardencorev1beta1.OIDCConfig{
		CABundle: ptr.To("ca"), ClientID: ptr.To("client"), GroupsClaim: ptr.To("g"), GroupsPrefix: ptr.To("g:"),
		IssuerURL: ptr.To("https://login.example.org"), RequiredClaims: map[string]string{"a": "b"}, SigningAlgs: []string{"ES256"},
		UsernameClaim: ptr.To("email"), UsernamePrefix: ptr.To("u:"),
	}
	got := configOf(server)
	if !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	got.RequiredClaims["a"] = "c"
	if server.RequiredClaims["a"] != "b" {
		t.Error("the Shoot shares a map with the preset in memory")
	}
}

func BenchmarkChoose(b *testing.B) {
	presets := make([]Preset, 100)
	for i := range presets {
		one := settingsv1alpha1.OpenIDConnectPresetSpec{
			Weight: int32(i%7 + 1), ShootSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": fmt.Sprint(i % 3)}},
		}
		presets[i] = Preset{Name: fmt.Sprint(i), Spec: &one}
	}
	for b.Loop() {
		if _, err := choose(presets, map[string]string{"env": "1"}); err != nil {
			b.Fatal(err)
		}
	}
}
