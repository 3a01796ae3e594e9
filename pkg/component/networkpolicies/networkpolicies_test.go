package networkpolicies

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/test/kit/golden"
)

func values() Values {
	return Values{
		Namespace: "garden",
		Networks: OfSeed(corev1beta1.SeedNetworks{
			Nodes: ptr.To("10.10.0.0/16"), Pods: "10.11.0.0/16", Services: "10.12.0.0/16", BlockCIDRs: []string{"169.254.169.254/32"},
		}),
		APIServers: []netip.AddrPort{netip.MustParseAddrPort("10.10.0.2:6443"), netip.MustParseAddrPort("10.10.0.1:6443"), netip.MustParseAddrPort("203.0.113.7:443")},
	}
}

func inRole(name, role string) func(*Values) {
	return func(v *Values) { v.Namespace, v.Labels = name, map[string]string{"gardener.cloud/role": role} }
}

func TestObjects(t *testing.T) {
	for name, change := range map[string]func(*Values){
		"garden":        func(*Values) {},
		"extension":     inRole("extension-provider", "extension"),
		"istio-system":  inRole("istio-system", "istio-system"),
		"istio-ingress": inRole("istio-ingress--a", "istio-ingress"),
		"handler": func(v *Values) {
			inRole("istio-ingress-handler-internet", "exposureclass-handler")(v)
			v.Labels["handler.exposureclass.gardener.cloud/name"] = "internet"
		},
		"shoot": func(v *Values) {
			inRole("shoot--foo--bar", "shoot")(v)
			v.ShootNetworks = []string{"192.168.0.0/17", "100.64.0.0/12", "100.64.0.0/12", "172.16.0.0/12"} // the last one covers a whole private range
		},
		"ipv6": func(v *Values) {
			v.Networks = Networks{Pods: []string{"2001:db8:1::/48"}, Services: []string{"fd00:10:20::/112"}}
			v.APIServers = []netip.AddrPort{netip.MustParseAddrPort("[fd00:10::1]:443")}
		},
		"additional": func(v *Values) {
			v.Namespace, v.Labels = "team", map[string]string{"team": "a"}
			v.AdditionalSelectors = []metav1.LabelSelector{{MatchLabels: map[string]string{"team": "a"}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := values()
			change(&v)
			objects, err := Objects(v)
			if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, name, objects)
		})
	}
}

func TestOtherNamespaces(t *testing.T) {
	v := values()
	for name, role := range map[string]string{"kube-system": "", "default": "", "shoot--foo": "project"} {
		v.Namespace, v.Labels = name, map[string]string{"gardener.cloud/role": role}
		if objects, err := Objects(v); err != nil || len(objects) > 0 {
			t.Errorf("namespace %s: got %d policies, %v", name, len(objects), err)
		}
	}
}

func TestErrors(t *testing.T) {
	for want, change := range map[string]func(*Values){
		"addresses of the seed's API server are not known": func(v *Values) { v.APIServers = nil },
		"networks.pods":             func(v *Values) { v.Networks.Pods = []string{"10.0.0.0"} },
		"networks.services":         func(v *Values) { v.Networks.Services = []string{""} },
		"networks.nodes":            func(v *Values) { v.Networks.Nodes = []string{"10.0.0.0/33"} },
		"networks.blockCIDRs":       func(v *Values) { v.Networks.Blocked = []string{"metadata"} },
		"the networks of the shoot": func(v *Values) { v.ShootNetworks = []string{"pods"} },
		"additionalNamespaceSelectors": func(v *Values) {
			v.Namespace = "team"
			v.AdditionalSelectors = []metav1.LabelSelector{{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Maybe"}}}}
		},
	} {
		v := values()
		change(&v)
		if objects, err := Objects(v); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %d objects and the error %v, want %q", len(objects), err, want)
		}
	}
}

// TestNamespaceSelectors checks that they select exactly the namespaces that have policies.
func TestNamespaceSelectors(t *testing.T) {
	additional := []metav1.LabelSelector{{MatchLabels: map[string]string{"team": "a"}}}
	for _, test := range []struct {
		name   string
		labels map[string]string
	}{
		{"garden", nil},
		{"kube-system", map[string]string{"role": "kube-system"}},
		{"shoot--foo--bar", map[string]string{"gardener.cloud/role": "shoot"}},
		{"extension-a", map[string]string{"gardener.cloud/role": "extension"}},
		{"istio-system", map[string]string{"gardener.cloud/role": "istio-system"}},
		{"istio-ingress", map[string]string{"gardener.cloud/role": "istio-ingress"}},
		{"handler", map[string]string{"handler.exposureclass.gardener.cloud/name": "internet"}},
		{"team", map[string]string{"team": "a"}},
		{"team", map[string]string{"team": "b"}},
		{"garden-dev", map[string]string{"gardener.cloud/role": "project"}},
	} {
		handled, err := Handles(test.name, test.labels, additional)
		if err != nil {
			t.Fatal(err)
		}
		all := labels.Merge(labels.Set{"kubernetes.io/metadata.name": test.name}, test.labels)
		selected := false
		for _, selector := range NamespaceSelectors(additional) {
			compiled, err := metav1.LabelSelectorAsSelector(&selector)
			if err != nil {
				t.Fatal(err)
			}
			selected = selected || compiled.Matches(all)
		}
		if handled != selected {
			t.Errorf("namespace %s with labels %v: has policies: %t, selected: %t", test.name, test.labels, handled, selected)
		}
	}
}

func TestShootNetworks(t *testing.T) {
	shoot := &corev1beta1.Shoot{}
	if got := ShootNetworks(shoot); got != nil {
		t.Errorf("a Shoot without networks has %v", got)
	}
	shoot.Spec.Networking = &corev1beta1.Networking{Pods: ptr.To("a"), Nodes: ptr.To("b")}
	shoot.Status.Networking = &corev1beta1.NetworkingStatus{Pods: []string{"c"}, Services: []string{"d", "e"}}
	if got, want := ShootNetworks(shoot), []string{"b", "a", "c", "d", "e"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestAPIServers(t *testing.T) {
	got := APIServers([]discoveryv1.EndpointSlice{
		{
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}, {Addresses: []string{"api.example.org"}}, {Addresses: []string{"fd00::1"}}},
			Ports:     []discoveryv1.EndpointPort{{Port: ptr.To[int32](6443)}},
		},
		{Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.2"}}}, Ports: []discoveryv1.EndpointPort{{}}},
	})
	want := []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:6443"), netip.MustParseAddrPort("[fd00::1]:6443")}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
