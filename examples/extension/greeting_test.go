package extension

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/extension"
)

func planOf(t *testing.T, config string) (names []string, err error) {
	t.Helper()
	object := &extensionsv1alpha1.Extension{}
	object.Namespace, object.Name = "shoot--dev--blue", Type
	object.Spec.ProviderConfig = &runtime.RawExtension{Raw: []byte(config)}
	cluster := &extension.Cluster{Shoot: &corev1beta1.Shoot{}}
	cluster.Shoot.Namespace, cluster.Shoot.Name = "garden-dev", "blue"
	plan, err := Plan(t.Context(), object, cluster)
	for _, bundle := range plan.Bundles {
		names = append(names, bundle.Name)
	}
	return names, err
}

func TestPlan(t *testing.T) {
	names, err := planOf(t, `{"apiVersion":"greeting.example.org/v1alpha1","kind":"GreetingConfig","text":"hello"}`)
	if err != nil || !slices.Equal(names, []string{bundleShoot, bundleSeed}) {
		t.Errorf("%v, %v", names, err)
	}
}

// TestWrongConfiguration: users read which field is wrong, and the Shoot is not tried again until they have changed it.
func TestWrongConfiguration(t *testing.T) {
	for config, want := range map[string]string{
		`{"apiVersion":"greeting.example.org/v1alpha1","kind":"GreetingConfig","txet":"hello"}`: `unknown field "txet"`,
		`{"apiVersion":"greeting.example.org/v1alpha1","kind":"GreetingConfig"}`:                "spec.providerConfig.text: Required value",
		``: "the configuration is missing",
	} {
		_, err := planOf(t, config)
		if err == nil || !strings.Contains(err.Error(), want) || !slices.Equal(extension.Codes(err), []corev1beta1.ErrorCode{corev1beta1.ErrorConfigurationProblem}) {
			t.Errorf("%s: %v, codes %v", config, err, extension.Codes(err))
		}
	}
}
