package exposure

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
)

// inputs returns the inputs of a Shoot in a Seed with the zones a, b and c and the handler internet.
func inputs(mode Mode, change ...func(*Inputs)) Inputs {
	config := &gardenletv1alpha1.GardenletConfiguration{ExposureClassHandlers: []gardenletv1alpha1.ExposureClassHandler{{
		Name: "internet", LoadBalancerService: gardenletv1alpha1.LoadBalancerServiceConfig{
			Annotations: map[string]string{"network": "public"}, Class: ptr.To("public"),
		},
	}}}
	gardenletv1alpha1.SetDefaults(config)
	seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "local", Annotations: map[string]string{constants.AnnotationSeedExposure: string(mode)}}}
	seed.Spec.Provider.Zones = []string{"a", "b", "c"}
	seed.Spec.Settings = &corev1beta1.SeedSettings{LoadBalancerServices: &corev1beta1.SeedSettingLoadBalancerServices{
		Annotations: map[string]string{"network": "private", "size": "large"}, Class: ptr.To("usual"),
		ExternalTrafficPolicy: ptr.To(corev1.ServiceExternalTrafficPolicyLocal), ProxyProtocol: &corev1beta1.LoadBalancerServicesProxyProtocol{Allowed: true},
		Zones: []corev1beta1.SeedSettingLoadBalancerServicesZones{{
			Name: "b", Annotations: map[string]string{"network": "zone-b"}, ExternalTrafficPolicy: ptr.To(corev1.ServiceExternalTrafficPolicyCluster),
			ProxyProtocol: &corev1beta1.LoadBalancerServicesProxyProtocol{},
		}},
	}}
	in := Inputs{Seed: seed, Config: config, Zones: []string{"a", "b", "c"}, Hosts: []string{"api.one.dev.internal.example.org", "api.one.example.org"}}
	for _, each := range change {
		each(&in)
	}
	return in
}

func class(handler string) func(*Inputs) {
	return func(in *Inputs) {
		in.Class = &corev1beta1.ExposureClass{ObjectMeta: metav1.ObjectMeta{Name: "public"}, Handler: handler}
	}
}

func zones(zones ...string) func(*Inputs) { return func(in *Inputs) { in.Zones = zones } }

func notZonal(in *Inputs) {
	in.Seed.Spec.Settings.LoadBalancerServices.ZonalIngress = &corev1beta1.SeedSettingLoadBalancerServicesZonalIngress{Enabled: ptr.To(false)}
}

func pairs(of map[string]string) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(of)) {
		all = append(all, key+"="+of[key])
	}
	return strings.Join(all, ",")
}

func balancerText(b Balancer) string {
	return fmt.Sprintf("%s class %s policy %s proxy %t ip %q", pairs(b.Annotations), ptr.Deref(b.Class, "-"), b.TrafficPolicy, b.ProxyProtocol, b.IP)
}

func text(exposed Exposure) string {
	text := string(exposed.Mode)
	if gateway := exposed.Gateway; gateway != nil {
		text += fmt.Sprintf(" %s/%s [%s] %s", gateway.Namespace, gateway.Service, pairs(gateway.Labels), balancerText(gateway.Balancer))
	}
	if exposed.Balancer != nil {
		text += " " + balancerText(*exposed.Balancer)
	}
	return text
}

// TestExposure checks which gateway serves a Shoot, with which labels and settings.
func TestExposure(t *testing.T) {
	const usual = "network=private,size=large class usual policy Local proxy true"
	for name, test := range map[string]struct {
		in   Inputs
		want string
	}{
		"all zones": {inputs(Istio), "Istio istio-ingress/istio-ingressgateway [app=istio-ingressgateway,istio=ingressgateway,istio-role=seed] " + usual + ` ip ""`},
		"one zone": {
			inputs(Istio, zones("a")),
			"Istio istio-ingress--a/istio-ingressgateway [app=istio-ingressgateway,istio=ingressgateway--zone--a,istio-role=seed] " + usual + ` ip ""`,
		},
		"one zone with its own settings": {
			inputs(GatewayAPI, zones("b")),
			`GatewayAPI istio-ingress--b/istio-ingressgateway [app=istio-ingressgateway,istio=ingressgateway--zone--b,istio-role=seed] network=zone-b class usual policy Cluster proxy false ip ""`,
		},
		"one zone without gateways for zones": {
			inputs(Istio, zones("a"), notZonal), "Istio istio-ingress/istio-ingressgateway [app=istio-ingressgateway,istio=ingressgateway,istio-role=seed] " + usual + ` ip ""`,
		},
		"a zone that the Seed does not have any more": {
			inputs(Istio, zones("d")), "Istio istio-ingress/istio-ingressgateway [app=istio-ingressgateway,istio=ingressgateway,istio-role=seed] " + usual + ` ip ""`,
		},
		"the only zone of the Seed": {
			inputs(Istio, zones("a"), func(in *Inputs) { in.Seed.Spec.Provider.Zones = []string{"a"} }),
			"Istio istio-ingress/istio-ingressgateway [app=istio-ingressgateway,istio=ingressgateway,istio-role=seed] " + usual + ` ip ""`,
		},
		"an exposure class": {
			inputs(Istio, class("internet")),
			"Istio istio-ingress-handler-internet/istio-ingressgateway [app=istio-ingressgateway,gardener.cloud/role=exposureclass-handler," +
				"handler.exposureclass.gardener.cloud/name=internet,istio-role=seed] network=public,size=large class public policy Local proxy true ip \"\"",
		},
		"an exposure class in one zone": {
			inputs(Istio, class("internet"), zones("b")),
			"Istio istio-ingress-handler-internet--b/istio-ingressgateway [app=istio-ingressgateway,gardener.cloud/role=exposureclass-handler--zone--b," +
				"handler.exposureclass.gardener.cloud/name=internet,istio-role=seed] network=public,size=large class public policy Cluster proxy false ip \"\"",
		},
		"an address": {
			inputs(Istio, func(in *Inputs) { in.Config.SNI.Ingress.ServiceExternalIP = ptr.To("192.0.2.7") }),
			"Istio istio-ingress/istio-ingressgateway [app=istio-ingressgateway,istio=ingressgateway,istio-role=seed] " + usual + ` ip "192.0.2.7"`,
		},
		"labels without app": {
			inputs(Istio, zones("a"), func(in *Inputs) { in.Config.SNI.Ingress.Labels = map[string]string{"team": "net"} }),
			"Istio istio-ingress--a/istio-ingressgateway [app=istio-ingressgateway,istio=ingressgateway--zone--a,istio-role=seed,team=net] " + usual + ` ip ""`,
		},
		"no host":                                {inputs(Istio, func(in *Inputs) { in.Hosts = nil }), "Istio"},
		"load balancers":                         {inputs(LoadBalancer), "LoadBalancer " + usual + ` ip ""`},
		"load balancers, one zone":               {inputs(LoadBalancer, zones("b")), `LoadBalancer network=zone-b class usual policy Cluster proxy false ip ""`},
		"load balancers with an exposure class":  {inputs(LoadBalancer, class("internet")), `LoadBalancer network=public,size=large class public policy Local proxy true ip ""`},
		"not exposed":                            {inputs(ClusterIP), "ClusterIP"},
		"not exposed, with an exposure class":    {inputs(ClusterIP, class("internet")), "error spec.exposureClassName: Seed local does not expose API servers"},
		"an exposure class without its handler":  {inputs(Istio, class("intranet")), "error spec.exposureClassName: ExposureClass public needs the handler intranet"},
		"load balancers without its handler":     {inputs(LoadBalancer, class("intranet")), "error spec.exposureClassName: ExposureClass public needs the handler intranet"},
		"a mode that does not exist":             {inputs("Nginx"), `error metadata.annotations[seed.gardener.cloud/exposure] of Seed local is "Nginx": it must be one of Istio`},
		"without the annotation":                 {inputs(Istio, func(in *Inputs) { in.Seed.Annotations = nil }), string(Default)},
		"settings of load balancers are missing": {inputs(LoadBalancer, func(in *Inputs) { in.Seed.Spec.Settings = nil }), `LoadBalancer  class - policy  proxy false ip ""`},
	} {
		t.Run(name, func(t *testing.T) {
			exposed, err := Of(test.in)
			got := text(exposed)
			if err != nil {
				got = "error " + err.Error()
			}
			// An error ends with what to do.
			if got != test.want && (err == nil || !strings.HasPrefix(got, test.want)) {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestGateways checks the gateways of a Seed, which include those of all its Shoots.
func TestGateways(t *testing.T) {
	names := func(in Inputs) (all []string) {
		for _, gateway := range Gateways(in.Seed, in.Config) {
			all = append(all, gateway.Namespace+" "+strings.Join(gateway.Zones, ""))
		}
		return all
	}
	want := []string{
		"istio-ingress abc", "istio-ingress--a a", "istio-ingress--b b", "istio-ingress--c c",
		"istio-ingress-handler-internet abc", "istio-ingress-handler-internet--a a", "istio-ingress-handler-internet--b b", "istio-ingress-handler-internet--c c",
	}
	if got := names(inputs(Istio)); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if got := names(inputs(Istio, notZonal)); !slices.Equal(got, []string{"istio-ingress abc", "istio-ingress-handler-internet abc"}) {
		t.Errorf("without zonal gateways: %q", got)
	}
	for _, of := range [][]func(*Inputs){{zones("a")}, {zones("a", "b")}, {class("internet")}, {class("internet"), zones("c")}} {
		in := inputs(Istio, of...)
		exposed, err := Of(in)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(Gateways(in.Seed, in.Config), func(g Gateway) bool { return fmt.Sprint(g) == fmt.Sprint(*exposed.Gateway) }) {
			t.Errorf("no gateway of the Seed is %+v", exposed.Gateway)
		}
	}
}

// TestZonalNamespace checks that the name of a zone is always part of a valid name.
func TestZonalNamespace(t *testing.T) {
	long := strings.Repeat("z", 60)
	for zone, want := range map[string]string{
		"eu-1a": "istio-ingress--eu-1a", "EU-1A": "istio-ingress--711db", long: "istio-ingress--a1d2c",
	} {
		if got := zonalNamespace("istio-ingress", zone); got != want {
			t.Errorf("%s: got %s", zone, got)
		}
	}
}

// TestAdvertisedAddress checks the address that API servers advertise in their cluster.
func TestAdvertisedAddress(t *testing.T) {
	for address, want := range map[string]string{
		"100.64.3.4": "240.64.3.4", "10.1.2.3": "240.1.2.3", "fd00::7": "fd00::7", "::ffff:10.1.2.3": "240.1.2.3", "None": "error",
	} {
		got, err := AdvertisedAddress(address)
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%s: got %s", address, got)
		}
	}
}
