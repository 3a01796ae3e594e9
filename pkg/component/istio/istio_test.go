package istio

import (
	"regexp"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/pkg/exposure"
	"github.com/trellis-k8s/trellis/test/kit/golden"
	"github.com/trellis-k8s/trellis/test/kit/schema"
)

// usual is the default gateway of a Seed with three zones.
func usual() GatewayValues {
	return GatewayValues{Image: "istio-proxy:v1", Gateway: exposure.Gateway{
		Namespace: "istio-ingress", Service: "istio-ingressgateway", Zones: []string{"a", "b", "c"},
		Labels: map[string]string{"app": "istio-ingressgateway", "istio": "ingressgateway", "istio-role": "seed"},
	}}
}

// handler is the zonal gateway of a handler, with all settings.
func handler() GatewayValues {
	values := usual()
	values.VerticalPodAutoscaler = true
	values.Gateway = exposure.Gateway{
		Namespace: "istio-ingress-handler-internet--a", Service: "istio-ingressgateway", Zones: []string{"a"}, Zone: "a", Handler: "internet",
		Labels: map[string]string{
			"app": "istio-ingressgateway", "gardener.cloud/role": "exposureclass-handler--zone--a", "handler.exposureclass.gardener.cloud/name": "internet",
		},
		Balancer: exposure.Balancer{
			Annotations: map[string]string{"example.org/network": "public"}, Class: ptr.To("example.org/public"), IP: "192.0.2.7",
			TrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal, ProxyProtocol: true,
		},
	}
	return values
}

func gatewayOf(t *testing.T, values GatewayValues) []client.Object {
	t.Helper()
	objects, err := Gateway(values)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func TestObjects(t *testing.T) {
	objects, err := ControlPlane(ControlPlaneValues{Image: "istio-istiod:v1", Zones: []string{"a", "b"}, Replicas: 2})
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "controlplane", objects)
	golden.Check(t, "gateway", gatewayOf(t, usual()))
	golden.Check(t, "handler", gatewayOf(t, handler()))
	for name, want := range map[string]int{"gateway": 6, "handler": 10} {
		values := map[string]GatewayValues{"gateway": usual(), "handler": handler()}[name]
		if checked := schema.Check(t, "istio", gatewayOf(t, values)); checked != want {
			t.Errorf("%s: %d objects are of Istio's kinds, want %d", name, checked, want)
		}
	}
	if service := Balanced(handler().Gateway, true, portTLS); *service.Spec.IPFamilyPolicy != corev1.IPFamilyPolicyRequireDualStack {
		t.Errorf("in a cluster with both IP families, the policy is %s", *service.Spec.IPFamilyPolicy)
	}
	if _, err := Gateway(GatewayValues{}); err == nil || !strings.Contains(err.Error(), "needs a namespace") {
		t.Errorf("a gateway without a name: %v", err)
	}
}

func filter(t *testing.T, name string) string {
	t.Helper()
	for _, object := range gatewayOf(t, usual()) {
		if found, is := object.(*unstructured.Unstructured); is && found.GetKind() == "EnvoyFilter" && found.GetName() == name {
			text, err := yaml.Marshal(found.Object)
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
	}
	t.Fatalf("no EnvoyFilter %s", name)
	return ""
}

// TestDestinations checks which destinations the header of a CONNECT request can name: API servers and VPN servers of control
// planes, and nothing else in the seed.
func TestDestinations(t *testing.T) {
	text := filter(t, "http-proxy")
	_, rest, _ := strings.Cut(text, "regex: ")
	line, _, _ := strings.Cut(rest, "\n")
	pattern := regexp.MustCompile(strings.Trim(line, `'"`))
	for destination, want := range map[string]bool{
		"outbound|443||kube-apiserver.shoot--dev--one.svc.cluster.local":                   true,
		"outbound|1194||vpn-seed-server.shoot--dev--one.svc.cluster.local":                 true,
		"outbound|1194||vpn-seed-server-1.shoot--dev--one.svc.cluster.local":               true,
		"outbound|1194||vpn-seed-server-9.shoot--dev--one.svc.cluster.local":               false,
		"outbound|443||kubernetes.default.svc.cluster.local":                               false,
		"outbound|443||kube-apiserver.garden.svc.cluster.local":                            false,
		"outbound|2379||etcd-main-client.shoot--dev--one.svc.cluster.local":                false,
		"outbound|443||gardener-resource-manager.garden.svc.cluster.local":                 false,
		"outbound|15012||istiod.istio-system.svc.cluster.local":                            false,
		"outbound|443||kube-apiserver.shoot--dev--one.svc.cluster.local.example.org":       false,
		"outbound|443||kube-apiserver.shoot--a.example.org/x.svc.cluster.local":            false,
		"outbound|443||kube-apiserver.shoot--a.evil.svc.cluster.local":                     false,
		"x outbound|443||kube-apiserver.shoot--dev--one.svc.cluster.local":                 false,
		"outbound|443||kube-apiserver.shoot--dev--one.svc.cluster.local\noutbound|1||evil": false,
		"BlackHoleCluster": false, "": false, "agent": false, "xds-grpc": false, "prometheus_stats": false,
	} {
		if got := pattern.MatchString(destination); got != want {
			t.Errorf("%q: got %t, want %t", destination, got, want)
		}
	}
	if strings.Count(text, "cluster_header") != 1 {
		t.Error("a route without the pattern takes its destination from a header")
	}
}

// TestMisdirectedRequests runs the script of the filter: where a gateway terminates TLS, the host of a request is that of the
// handshake.
func TestMisdirectedRequests(t *testing.T) {
	var found struct {
		Spec struct {
			ConfigPatches []struct {
				Patch struct {
					Value struct {
						TypedConfig struct {
							Source struct {
								Inline string `json:"inline_string"`
							} `json:"default_source_code"`
						} `json:"typed_config"`
					} `json:"value"`
				} `json:"patch"`
			} `json:"configPatches"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal([]byte(filter(t, "misdirected-requests")), &found); err != nil {
		t.Fatal(err)
	}
	script := found.Spec.ConfigPatches[0].Patch.Value.TypedConfig.Source.Inline
	for _, test := range []struct {
		name, host string
		refused    bool
	}{
		{"api.one.example.org", "api.one.example.org", false},
		{"api.one.example.org", "API.one.example.org:443", false},
		{"api.one.example.org", "api.two.example.org", true},
		{"api.one.example.org", "api.one.example.org:8443", true},
		{"api.one.example.org", "", true},
		{"*.ingress.example.org", "shop.ingress.example.org", false},
		{"*.ingress.example.org", "ingress.example.org", true},
		{"*.ingress.example.org", "shopingress.example.org", true},
		{"", "api.one.example.org", false}, // without a name in the handshake there is no certificate for a host
	} {
		if got := refuses(t, script, test.name, test.host); got != test.refused {
			t.Errorf("%q with the host %q: refused %t, want %t", test.name, test.host, got, test.refused)
		}
	}
}

// refuses runs the script for a request with the given server name and host, and reports whether it answers with 421.
func refuses(t *testing.T, script, name, host string) bool {
	t.Helper()
	state := lua.NewState()
	defer state.Close()
	request := `
local answer = ""
local function call(value) return function() return value end end
local handle = {
  streamInfo = call({requestedServerName = call(NAME)}),
  headers = call({get = function(_, key) if key == ":authority" and HOST ~= "" then return HOST end end}),
  respond = function(_, headers) answer = headers[":status"] end,
}
envoy_on_request(handle)
ANSWER = answer`
	state.SetGlobal("NAME", lua.LString(name))
	state.SetGlobal("HOST", lua.LString(host))
	if err := state.DoString(script + request); err != nil {
		t.Fatal(err)
	}
	return state.GetGlobal("ANSWER").String() == "421"
}
