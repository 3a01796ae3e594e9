package network

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/extension"
	"github.com/trellis-k8s/trellis/test/kit/golden"
)

func TestPlan(t *testing.T) {
	object := &extensionsv1alpha1.Network{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--dev--blue", Name: "blue"}}
	object.Spec.PodCIDR = "100.96.0.0/16"
	plan, err := Plan(object, "registry.example.org/node-agents:v1")
	if err != nil {
		t.Fatal(err)
	}
	golden.CheckPlan(t, "network", plan, object.Status)
	for text, change := range map[string]func(*extensionsv1alpha1.Network){
		"only supports IPv4": func(n *extensionsv1alpha1.Network) { n.Spec.PodCIDR = "2001:db8::/48" },
		"IPFamily":           func(n *extensionsv1alpha1.Network) { n.Spec.IPFamilies = []extensionsv1alpha1.IPFamily{"IPv4", "IPv6"} },
		"decode": func(n *extensionsv1alpha1.Network) {
			n.Spec.ProviderConfig = &runtime.RawExtension{Raw: []byte(`{"a":1}`)}
		},
	} {
		changed := object.DeepCopy()
		change(changed)
		_, err := Plan(changed, "image")
		if err == nil || extension.Codes(err)[0] != gardencorev1beta1.ErrorConfigurationProblem || text != "IPFamily" && !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
