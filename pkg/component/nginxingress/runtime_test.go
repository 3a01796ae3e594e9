package nginxingress

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/exposure"
	"github.com/trellis-k8s/trellis/test/kit/golden"
)

func runtimeValues() RuntimeValues {
	return RuntimeValues{
		Image: "nginx-ingress-controller:v1", ImageBackend: "ingress-default-backend:v1", Namespace: "garden", Replicas: 2, PriorityClass: "gardener-system-600",
		VerticalPodAutoscaler: true,
	}
}

// TestRuntimeObjects compares the objects of a seed behind a gateway, and of one with a load balancer for the controller.
func TestRuntimeObjects(t *testing.T) {
	behind, balanced := runtimeValues(), runtimeValues()
	behind.Gateways, behind.Config = []string{"istio-ingress"}, &runtime.RawExtension{Raw: []byte(`{"use-gzip":"true","worker-processes":"4"}`)}
	balanced.Balancer = &exposure.Balancer{
		Annotations: map[string]string{"example.org/network": "public"}, Class: ptr.To("example.org/local"), TrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal,
	}
	balanced.VerticalPodAutoscaler = false
	for name, values := range map[string]RuntimeValues{"gateway": behind, "balancer": balanced} {
		objects, err := RuntimeObjects(values)
		if err != nil {
			t.Fatal(err)
		}
		golden.Check(t, "runtime-"+name, objects)
	}
}

// TestUnusableConfig checks that a configuration that nginx would not understand is an error that names the field.
func TestUnusableConfig(t *testing.T) {
	for _, raw := range []string{`{"worker-processes":4}`, `["a"]`, `{`} {
		values := runtimeValues()
		values.Config = &runtime.RawExtension{Raw: []byte(raw)}
		if objects, err := RuntimeObjects(values); err == nil || !strings.Contains(err.Error(), "providerConfig") {
			t.Errorf("%s: got %d objects and the error %v", raw, len(objects), err)
		}
	}
}

// TestDisabled checks that there is a controller only if the feature gate is set to false.
func TestDisabled(t *testing.T) {
	for _, test := range []struct {
		gates map[string]bool
		want  bool
	}{{nil, true}, {map[string]bool{GateOfGarden: false}, true}, {map[string]bool{GateOfSeed: true}, true}, {map[string]bool{GateOfSeed: false}, false}} {
		if got := Disabled(test.gates, GateOfSeed); got != test.want {
			t.Errorf("%v: disabled: %t, want %t", test.gates, got, test.want)
		}
	}
}
