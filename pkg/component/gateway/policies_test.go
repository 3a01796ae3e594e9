package gateway

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-k8s/trellis/pkg/component/nginxingress"
	"github.com/trellis-k8s/trellis/pkg/component/vpnseedserver"
	"github.com/trellis-k8s/trellis/pkg/exposure"
	"github.com/trellis-k8s/trellis/pkg/netpol"
)

// TestMayForward checks that the network policies let gateways connect to what they forward connections to: API servers, and servers of tunnels. They
// may connect to no API server that another gateway exposes.
func TestMayForward(t *testing.T) {
	own := exposure.Gateway{Namespace: "istio-ingress", Service: constants.IstioIngressGatewayName, Labels: map[string]string{"app": "istio-ingressgateway"}}
	objects, err := Objects(Values{Image: "gateway:v1", Gateways: []exposure.Gateway{own}})
	if err != nil {
		t.Fatal(err)
	}
	var pods, namespace map[string]string
	for _, object := range objects {
		switch object := object.(type) {
		case *appsv1.Deployment:
			pods = object.Spec.Template.Labels
		case *corev1.Namespace:
			namespace = object.Labels
		}
	}
	namespace[corev1.LabelMetadataName] = own.Namespace // as the API server does
	for _, test := range []struct {
		what     string
		services func() ([]client.Object, error)
		name     string
		port     int32
		want     bool
	}{
		{"an API server behind this gateway", serviceOf("istio-ingress--a", "istio-ingress"), "kube-apiserver", 443, true},
		{"an API server behind another gateway", serviceOf("istio-ingress-handler-internal"), "kube-apiserver", 443, false},
		{"an API server that is not exposed", serviceOf(), "kube-apiserver", 443, false},
		{"the ingress controller behind this gateway", ingressBehind("istio-ingress"), nginxingress.Service, nginxingress.Port, true},
		{"the ingress controller behind another gateway", ingressBehind("istio-ingress-handler-internal"), nginxingress.Service, nginxingress.Port, false},
		{"a server of the tunnel", tunnel, vpnseedserver.Service(0), vpnseedserver.PortAgents, true},
	} {
		all, err := test.services()
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, object := range all {
			service, is := object.(*corev1.Service)
			if !is || service.Name != test.name {
				continue
			}
			found = true
			if got := mayConnect(t, service, test.port, own.Namespace, namespace, pods); got != test.want {
				t.Errorf("%s: a gateway may connect: %t, want %t", test.what, got, test.want)
			}
		}
		if !found {
			t.Errorf("%s: the Service %s does not exist", test.what, test.name)
		}
	}
}

func serviceOf(gateways ...string) func() ([]client.Object, error) {
	return func() ([]client.Object, error) {
		return kubeapiserver.Service(kubeapiserver.ServiceValues{Namespace: "shoot--dev--one", Gateways: gateways})
	}
}

func ingressBehind(gateway string) func() ([]client.Object, error) {
	return func() ([]client.Object, error) {
		return nginxingress.RuntimeObjects(nginxingress.RuntimeValues{Namespace: constants.GardenNamespace, Gateways: []string{gateway}})
	}
}

func tunnel() ([]client.Object, error) {
	return vpnseedserver.Objects(vpnseedserver.Values{Namespace: "shoot--dev--one", Image: "tunnel:v1", Servers: 1})
}

// mayConnect reports whether the policies of a Service let Pods with labels connect, in both directions.
func mayConnect(t *testing.T, service *corev1.Service, port int32, from string, namespace, pods map[string]string) bool {
	t.Helper()
	result := netpol.Desired(netpol.Read(service), netpol.Input{Namespaces: map[string]netpol.Namespace{
		service.Namespace: {Labels: map[string]string{constants.LabelGardenRole: constants.RoleShoot}}, from: {Labels: namespace},
	}}, netpol.Config{})
	if len(result.Problems) > 0 {
		t.Fatalf("problems of the Service %s: %v", service.Name, result.Problems)
	}
	out, in := false, false
	for _, policy := range result.Policies {
		for _, rule := range policy.Spec.Egress {
			out = out || policy.Namespace == from && selects(t, &policy.Spec.PodSelector, pods) && has(rule.Ports, port)
		}
		for _, rule := range policy.Spec.Ingress {
			for _, peer := range rule.From {
				in = in || policy.Namespace == service.Namespace && has(rule.Ports, port) &&
					peer.NamespaceSelector != nil && selects(t, peer.NamespaceSelector, namespace) && selects(t, peer.PodSelector, pods)
			}
		}
	}
	return out && in
}

func has(ports []networkingv1.NetworkPolicyPort, port int32) bool {
	for _, one := range ports {
		if one.Port.IntVal == port {
			return true
		}
	}
	return false
}

func selects(t *testing.T, selector *metav1.LabelSelector, of map[string]string) bool {
	t.Helper()
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Matches(labels.Set(of))
}
