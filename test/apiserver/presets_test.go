package apiserver

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	settingsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/settings/v1alpha1"
	"github.com/trellis-k8s/trellis/test/kit"
)

// TestPresets checks that a new Shoot takes over the OpenID Connect issuer of a preset of the garden, and rather that of its Project.
func TestPresets(t *testing.T) {
	t.Parallel()
	const namespace = "garden-presets"
	c := newClient(t)
	ensureNamespace(t, c, namespace)
	project := &gardencorev1beta1.Project{}
	project.Name, project.Spec.Namespace, project.Labels = "presets", ptr(namespace), map[string]string{"presets": "true"}
	kit.Must(t, c.Create(t.Context(), project))
	of := func(issuer string) settingsv1alpha1.OpenIDConnectPresetSpec {
		return settingsv1alpha1.OpenIDConnectPresetSpec{
			Weight: 1, Server: settingsv1alpha1.KubeAPIServerOpenIDConnect{ClientID: "presets", IssuerURL: issuer},
		}
	}
	ofGarden := &settingsv1alpha1.ClusterOpenIDConnectPreset{}
	ofGarden.Name, ofGarden.Spec.OpenIDConnectPresetSpec = "presets", of("https://garden.example.org")
	ofGarden.Spec.ProjectSelector = &metav1.LabelSelector{MatchLabels: project.Labels}
	ofProject := &settingsv1alpha1.OpenIDConnectPreset{Spec: of("https://project.example.org")}
	ofProject.Namespace, ofProject.Name = namespace, "presets"
	// The API server learns of a new preset by a watch.
	applied := func(issuer string) {
		t.Helper()
		kit.Eventually(t, "a new Shoot gets the issuer "+issuer, func() string {
			shoot := exampleOf(t, "Shoot", namespace, "one", &gardencorev1beta1.Shoot{})
			shoot.Annotations, shoot.Labels, shoot.Spec.SeedName, shoot.Spec.SeedSelector = nil, nil, nil, nil
			shoot.Spec.Tolerations, shoot.Spec.ExposureClassName = nil, nil
			if server := shoot.Spec.Kubernetes.KubeAPIServer; server != nil {
				server.StructuredAuthentication, server.OIDCConfig = nil, nil
			}
			kit.Must(t, c.Create(t.Context(), shoot, client.DryRunAll))
			if server := shoot.Spec.Kubernetes.KubeAPIServer; server == nil || server.OIDCConfig == nil || *server.OIDCConfig.IssuerURL != issuer {
				return fmt.Sprintf("it has %+v", server)
			}
			return ""
		})
	}
	kit.Must(t, c.Create(t.Context(), ofGarden))
	applied("https://garden.example.org")
	kit.Must(t, c.Create(t.Context(), ofProject))
	applied("https://project.example.org")
	kit.Must(t, c.Delete(t.Context(), ofProject))
	applied("https://garden.example.org")
	kit.Must(t, c.Delete(t.Context(), ofGarden))
}
