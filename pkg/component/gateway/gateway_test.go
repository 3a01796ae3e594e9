package gateway

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/exposure"
	"github.com/trellis-k8s/trellis/pkg/gateway/routing"
	"github.com/trellis-k8s/trellis/test/kit/golden"
	"github.com/trellis-k8s/trellis/test/kit/schema"
)

// values are those of a Seed with three zones and a zonal gateway of a handler with all settings.
func values() Values {
	return Values{Image: "gateway:v1", VerticalPodAutoscaler: true, Gateways: []exposure.Gateway{{
		Namespace: "istio-ingress", Service: "istio-ingressgateway", Zones: []string{"a", "b", "c"},
		Labels: map[string]string{"app": "istio-ingressgateway", "istio": "ingressgateway", "istio-role": "seed"},
	}, {
		Namespace: "istio-ingress-handler-internet--a", Service: "istio-ingressgateway", Zones: []string{"a"}, Zone: "a", Handler: "internet",
		Labels: map[string]string{
			"app": "istio-ingressgateway", "gardener.cloud/role": "exposureclass-handler--zone--a", "handler.exposureclass.gardener.cloud/name": "internet",
		},
		Balancer: exposure.Balancer{
			Annotations: map[string]string{"example.org/network": "public"}, Class: ptr.To("example.org/public"), IP: "192.0.2.7",
			TrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal, ProxyProtocol: true,
		},
	}}}
}

// TestObjects compares the objects, and validates those of the Gateway API.
func TestObjects(t *testing.T) {
	objects, err := Objects(values())
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "gateways", objects)
	if checked := schema.Check(t, "gatewayapi", objects); checked != 3 {
		t.Errorf("%d objects are of the Gateway API, want 3", checked)
	}
	for _, object := range objects {
		switch of := object.(type) {
		case *rbacv1.ClusterRole:
			if slices.ContainsFunc(of.Rules, func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, "secrets") }) {
				t.Error("gateways may read Secrets")
			}
		case *appsv1.Deployment:
			if asks := slices.Contains(of.Spec.Template.Spec.Containers[0].Args, "--proxy-protocol"); asks != strings.Contains(of.Namespace, "handler") {
				t.Errorf("the gateway in %s accepts the PROXY protocol: %t", of.Namespace, asks)
			}
		}
	}
	if controller != routing.Controller {
		t.Errorf("the class has the controller %s, and the program expects %s", controller, routing.Controller)
	}
}

// TestSingleNode checks that one Pod runs on the only node.
func TestSingleNode(t *testing.T) {
	v := values()
	v.SingleNode = true
	deployment, err := v.deployment(v.Gateways[0])
	if err != nil || *deployment.Spec.Replicas != 1 {
		t.Errorf("%v replicas, %v", deployment.Spec.Replicas, err)
	}
	if _, err := Objects(Values{Gateways: []exposure.Gateway{{}}}); err == nil || !strings.Contains(err.Error(), "needs a namespace") {
		t.Errorf("a gateway without a name: %v", err)
	}
}
