package nginxingress

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/test/kit/golden"
)

func TestObjects(t *testing.T) {
	values := Values{Image: "nginx-ingress-controller:v1", ImageBackend: "ingress-default-backend:v1", ServerHost: "api.one.dev.internal.example.org"}
	objects, err := Objects(values)
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "shoot", objects)
	values.VerticalPodAutoscaler = true
	values.Config = corev1beta1.NginxIngress{
		LoadBalancerSourceRanges: []string{"192.0.2.0/24"}, ExternalTrafficPolicy: ptr.To(corev1.ServiceExternalTrafficPolicyLocal), Config: map[string]string{"worker-processes": "4", "enable-vts-status": "true"},
	}
	if objects, err = Objects(values); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "settings", objects)
}
