package clusteropenidconnectpreset

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/admission"
	"github.com/trellis-k8s/trellis/pkg/admission/admissiontest"
	"github.com/trellis-k8s/trellis/pkg/admission/openidconnectpreset"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	settingsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/settings/v1alpha1"
)

func spec(client string, weight int32, labels map[string]string) settingsv1alpha1.OpenIDConnectPresetSpec {
	return settingsv1alpha1.OpenIDConnectPresetSpec{
		Weight: weight, ShootSelector: &metav1.LabelSelector{MatchLabels: labels},
		Server: settingsv1alpha1.KubeAPIServerOpenIDConnect{ClientID: client, IssuerURL: "https://login.example.org"},
	}
}

func ofNamespace(namespace, name string, weight int32, labels map[string]string) runtime.Object {
	return &settingsv1alpha1.OpenIDConnectPreset{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: spec(name, weight, labels),
	}
}

func ofAll(name string, weight int32, project map[string]string) runtime.Object {
	return &settingsv1alpha1.ClusterOpenIDConnectPreset{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: settingsv1alpha1.ClusterOpenIDConnectPresetSpec{
			OpenIDConnectPresetSpec: spec(name, weight, nil), ProjectSelector: &metav1.LabelSelector{MatchLabels: project},
		},
	}
}

// admitted returns the clients that the presets give to a new Shoot in garden-dev with the labels env=test.
func admitted(t *testing.T, server *gardencorev1beta1.KubeAPIServerConfig, operation admission.Operation, objects ...runtime.Object) string {
	t.Helper()
	project := &gardencorev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "dev", Labels: map[string]string{"team": "one"}}}
	project.Spec.Namespace = ptr.To("garden-dev")
	garden := admissiontest.NewGarden(append(objects, project), time.Now())
	shoot := &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "s", Labels: map[string]string{"env": "test"}}}
	shoot.Spec.Kubernetes.KubeAPIServer = server
	request := &admission.Request{
		Operation: operation, Resource: gardencorev1beta1.Resource("shoots"), Namespace: "garden-dev", Object: shoot,
	}
	for _, plugin := range []admission.Plugin{openidconnectpreset.Plugin, Plugin} {
		if err := admission.Admit(t.Context(), plugin.Rules, request, garden); err != nil {
			t.Fatal(err)
		}
	}
	if after := shoot.Spec.Kubernetes.KubeAPIServer; after != nil && after.OIDCConfig != nil {
		return ptr.Deref(after.OIDCConfig.ClientID, "")
	}
	return ""
}

func TestWhichPresetApplies(t *testing.T) {
	t.Parallel()
	own := &gardencorev1beta1.KubeAPIServerConfig{OIDCConfig: &gardencorev1beta1.OIDCConfig{ClientID: ptr.To("own")}}
	structured := &gardencorev1beta1.KubeAPIServerConfig{StructuredAuthentication: &gardencorev1beta1.StructuredAuthentication{ConfigMapName: "c"}}
	for name, test := range map[string]struct {
		server  *gardencorev1beta1.KubeAPIServerConfig
		update  bool
		presets []runtime.Object
		want    string
	}{
		"no preset":             {},
		"of the project":        {presets: []runtime.Object{ofNamespace("garden-dev", "a", 1, nil)}, want: "a"},
		"of another project":    {presets: []runtime.Object{ofNamespace("garden-other", "a", 1, nil)}},
		"the highest weight":    {presets: []runtime.Object{ofNamespace("garden-dev", "b", 2, nil), ofNamespace("garden-dev", "a", 9, nil), ofNamespace("garden-dev", "c", 3, nil)}, want: "a"},
		"the last name":         {presets: []runtime.Object{ofNamespace("garden-dev", "a", 2, nil), ofNamespace("garden-dev", "b", 2, nil)}, want: "b"},
		"labels of the Shoot":   {presets: []runtime.Object{ofNamespace("garden-dev", "a", 1, map[string]string{"env": "test"}), ofNamespace("garden-dev", "b", 9, map[string]string{"env": "prod"})}, want: "a"},
		"of the garden":         {presets: []runtime.Object{ofAll("all", 1, nil)}, want: "all"},
		"labels of the Project": {presets: []runtime.Object{ofAll("one", 1, map[string]string{"team": "one"}), ofAll("two", 9, map[string]string{"team": "two"})}, want: "one"},
		"project before garden": {presets: []runtime.Object{ofAll("all", 99, nil), ofNamespace("garden-dev", "a", 1, nil)}, want: "a"},
		"own configuration":     {server: own.DeepCopy(), presets: []runtime.Object{ofAll("all", 1, nil), ofNamespace("garden-dev", "a", 1, nil)}, want: "own"},
		"structured":            {server: structured, presets: []runtime.Object{ofAll("all", 1, nil)}},
		"an existing Shoot":     {update: true, presets: []runtime.Object{ofAll("all", 1, nil)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			operation := apiadmission.Create
			if test.update {
				operation = apiadmission.Update
			}
			if got := admitted(t, test.server, operation, test.presets...); got != test.want {
				t.Errorf("the Shoot has client %q, want %q", got, test.want)
			}
		})
	}
}
