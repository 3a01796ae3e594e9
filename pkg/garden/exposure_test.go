package garden

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/exposure"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/inventory"
	"github.com/trellis-k8s/trellis/test/kit/golden"
	"github.com/trellis-k8s/trellis/test/kit/schema"
)

// byIstio is a Garden with DNS records and settings of its load balancer, exposed by Istio.
func byIstio(change ...func(*Inputs)) Inputs {
	garden := small()
	garden.Annotations = map[string]string{constants.AnnotationGardenExposure: "Istio"}
	garden.Spec.RuntimeCluster.Provider.Zones = []string{"a", "b"}
	garden.Spec.RuntimeCluster.Settings = &operatorv1alpha1.Settings{LoadBalancerServices: &operatorv1alpha1.SettingLoadBalancerServices{
		Annotations:   map[string]string{"example.org/public": "true"},
		ProxyProtocol: &operatorv1alpha1.LoadBalancerServicesProxyProtocol{Allowed: true},
	}}
	garden.Spec.DNS = &operatorv1alpha1.DNSManagement{Providers: []operatorv1alpha1.DNSProvider{{Name: "one", Type: "local"}}}
	garden.Spec.VirtualCluster.DNS.Domains[0].Provider = ptr.To("one")
	return known(garden, change...)
}

// TestIstio compares the gateway, and what forwards its connections, with testdata.
func TestIstio(t *testing.T) {
	plan := planOf(t, byIstio())
	for name, kinds := range map[string]int{bundleGateway: 10, bundleExposure: 3, bundleServerService: 0} {
		at := slices.IndexFunc(plan.Bundles, func(bundle flow.Bundle) bool { return bundle.Name == name })
		if at < 0 {
			t.Fatalf("there is no %s", name)
		}
		golden.Check(t, "exposure-"+name, plan.Bundles[at].Objects)
		if checked := schema.Check(t, "istio", plan.Bundles[at].Objects); checked != kinds {
			t.Errorf("%s: %d objects are of Istio's kinds, want %d", name, checked, kinds)
		}
	}
	for _, name := range []string{bundleIstioKinds, bundleIstio} {
		if bundleOf(t, plan, name) == "" {
			t.Errorf("there is no %s", name)
		}
	}
	if slices.ContainsFunc(Inactive(byIstio().Garden), func(text string) bool { return strings.Contains(text, "proxyProtocol") }) {
		t.Error("the PROXY protocol is reported as not active")
	}
}

// TestRoutesOfGarden checks what exists in each mode, and while clients may still use the route of a former mode.
func TestRoutesOfGarden(t *testing.T) {
	left := func(name string, after time.Duration) func(*Inputs) {
		return func(in *Inputs) { in.Routes, in.RecordsReady = exposure.Routes{Wanted: name}, after > 0 }
	}
	const service, gateway = exposure.OwnBalancer, exposure.GardenGatewayNamespace
	for name, test := range map[string]struct {
		mode     string
		change   func(*Inputs)
		balancer bool
		gateway  bool
	}{
		"by default":                      {"", nil, true, false},
		"a load balancer":                 {"LoadBalancer", nil, true, false},
		"none":                            {"ClusterIP", nil, false, false},
		"Istio":                           {"Istio", nil, false, true},
		"from a load balancer to Istio":   {"Istio", left(service, time.Second), true, true},
		"from Istio to a load balancer":   {"LoadBalancer", left(gateway, time.Second), true, true},
		"after the records were settled":  {"Istio", func(in *Inputs) { ended(in, service, true) }, false, true},
		"before the records are settled":  {"Istio", func(in *Inputs) { ended(in, service, false) }, true, true},
		"with records of somebody else":   {"Istio", func(in *Inputs) { ended(in, service, true); in.Garden.Spec.DNS = nil }, true, true},
		"back after the gateway was left": {"LoadBalancer", func(in *Inputs) { ended(in, gateway, true) }, true, false},
	} {
		in := byIstio()
		delete(in.Garden.Annotations, constants.AnnotationGardenExposure)
		if test.mode != "" {
			in.Garden.Annotations[constants.AnnotationGardenExposure] = test.mode
		}
		if test.change != nil {
			test.change(&in)
		}
		plan := planOf(t, in)
		balancer := strings.Contains(bundleOf(t, plan, bundleServerService), `"type":"LoadBalancer"`)
		forwards := bundleOf(t, plan, bundleExposure) != "" && bundleOf(t, plan, bundleGateway) != "" && bundleOf(t, plan, bundleIstio) != ""
		if balancer != test.balancer || forwards != test.gateway {
			t.Errorf("%s: load balancer %t, gateway %t", name, balancer, forwards)
		}
	}
	wrong := byIstio()
	wrong.Garden.Annotations[constants.AnnotationGardenExposure] = "GatewayAPI"
	if !slices.ContainsFunc(planOf(t, wrong).Waits, func(wait flow.Wait) bool {
		return strings.Contains(wait.Reason, "must be one of Istio, LoadBalancer, ClusterIP")
	}) {
		t.Error("a wrong annotation is not reported")
	}
}

// ended sets a former route whose time has come.
func ended(in *Inputs, name string, ready bool) {
	in.RecordsReady = ready
	in.Routes = exposure.Routes{Wanted: exposure.GardenGatewayNamespace, Leaving: []exposure.Leaving{{Name: name, Ends: in.Now.Add(-time.Second)}}}
	if name == exposure.GardenGatewayNamespace {
		in.Routes.Wanted = exposure.OwnBalancer
	}
}

// TestIstioOfSeed checks that a Garden that is not exposed by Istio any more, or is deleted, leaves the control plane of Istio to a seed that needs it.
func TestIstioOfSeed(t *testing.T) {
	for _, seedHasGateways := range []bool{false, true} {
		for _, deleting := range []bool{false, true} {
			in := byIstio()
			in.Emitted = emittedOf(t, in)
			in.Garden.Annotations[constants.AnnotationGardenExposure] = "ClusterIP"
			in.SeedBundles = []string{"system"}
			if seedHasGateways {
				in.SeedBundles = []string{inventory.Gateways, "system"}
			}
			if deleting {
				in.Deleting, in.Served, in.Users = true, true, &[]string{}
			}
			at := slices.IndexFunc(planOf(t, in).Tombstones, func(tombstone flow.Tombstone) bool { return tombstone.Name == bundleIstio })
			if at < 0 {
				t.Fatalf("%s stays", bundleIstio)
			}
			if released := planOf(t, in).Tombstones[at].Release == flow.ReleaseBundle; released != seedHasGateways {
				t.Errorf("released %t, if the seed has gateways: %t, deleting %t", released, seedHasGateways, deleting)
			}
		}
	}
}
