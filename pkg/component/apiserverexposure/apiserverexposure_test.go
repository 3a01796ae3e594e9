package apiserverexposure

import (
	"strings"
	"testing"

	"github.com/trellis-k8s/trellis/pkg/exposure"
	"github.com/trellis-k8s/trellis/test/kit/golden"
)

func values(mode exposure.Mode, gateways ...string) Values {
	v := Values{Namespace: "shoot--dev--one", Mode: mode, Hosts: []string{"api.one.dev.internal.example.org", "api.one.example.org"}}
	for _, name := range gateways {
		v.Gateways = append(v.Gateways, exposure.Gateway{Namespace: name, Labels: map[string]string{"app": "istio-ingressgateway", "istio": name}})
	}
	return v
}

// TestObjects compares the objects of both modes, also while a previous gateway is still used.
func TestObjects(t *testing.T) {
	for name, v := range map[string]Values{
		"istio":       values(exposure.Istio, "istio-ingress"),
		"istio-moves": values(exposure.Istio, "istio-ingress--a", "istio-ingress"),
		"gatewayapi":  values(exposure.GatewayAPI, "istio-ingress"),
		"tunnel": {
			Namespace: "shoot--dev--one", Service: "vpn-seed-server-0", Port: 1194, Mode: exposure.GatewayAPI,
			Hosts: []string{"vpn-seed-server-0.shoot--dev--one.svc.cluster.local"}, Gateways: values("", "istio-ingress").Gateways,
		},
		"virtual-garden": {Namespace: "garden", Service: "virtual-garden-kube-apiserver", Mode: exposure.Istio, Hosts: []string{"api.garden.example.org"}, Gateways: values("", "virtual-garden-istio-ingress").Gateways},
	} {
		objects, err := Objects(v)
		if err != nil {
			t.Fatal(err)
		}
		golden.Check(t, name, objects)
	}
	for _, v := range []Values{values(exposure.Istio), values(exposure.LoadBalancer, "a"), {Mode: exposure.Istio, Gateways: values("", "a").Gateways}} {
		if objects, err := Objects(v); err == nil || !strings.Contains(err.Error(), "expose the API server") {
			t.Errorf("got %d objects and %v", len(objects), err)
		}
	}
}
