package agents

import (
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// testService returns a Service that is created at a second, and has an address unless it is empty.
func testService(name string, second int, address string, change ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, CreationTimestamp: metav1.NewTime(time.Unix(int64(second), 0))},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer},
	}
	if address != "" {
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: address}}
	}
	for _, c := range change {
		c(s)
	}
	return s
}

func TestAssign(t *testing.T) {
	class := "other"
	for name, test := range map[string]struct {
		services []*corev1.Service
		want     string
		fails    string
	}{
		"in the order of their creation":    {services: []*corev1.Service{testService("b", 2, ""), testService("a", 3, ""), testService("c", 1, "")}, want: "c=10.0.0.1 b=10.0.0.2 a=10.0.0.3"},
		"it keeps its address":              {services: []*corev1.Service{testService("a", 1, ""), testService("b", 2, "10.0.0.1")}, want: "a=10.0.0.2"},
		"an address of another network":     {services: []*corev1.Service{testService("a", 1, "10.9.0.1")}, want: "a=10.0.0.1"},
		"two with the same address":         {services: []*corev1.Service{testService("a", 1, "10.0.0.1"), testService("b", 2, "10.0.0.1")}, want: "b=10.0.0.2"},
		"one that is for others":            {services: []*corev1.Service{testService("a", 1, "", func(s *corev1.Service) { s.Spec.LoadBalancerClass = &class })}},
		"one that is no load balancer":      {services: []*corev1.Service{testService("a", 1, "10.0.0.1", func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeClusterIP })}, want: "a="},
		"one that wants an address":         {services: []*corev1.Service{testService("a", 1, "", func(s *corev1.Service) { s.Spec.LoadBalancerIP = "10.0.0.5" })}, want: "a=10.0.0.5"},
		"one that wants an address of none": {services: []*corev1.Service{testService("a", 1, "", func(s *corev1.Service) { s.Spec.LoadBalancerIP = "10.9.0.5" }), testService("b", 2, "")}, want: "b=10.0.0.1", fails: "10.9.0.5 is not free"},
		"no address is left": {services: []*corev1.Service{
			testService("a", 1, ""), testService("b", 2, ""), testService("c", 3, ""), testService("d", 4, ""), testService("e", 5, ""),
			testService("f", 6, ""), testService("g", 7, ""), testService("h", 8, ""),
		}, want: "a=10.0.0.1 b=10.0.0.2 c=10.0.0.3 d=10.0.0.4 e=10.0.0.5 f=10.0.0.6 g=10.0.0.7", fails: "all addresses"},
	} {
		changed, err := assign(test.services, netip.MustParsePrefix("10.0.0.0/29"))
		var got []string
		for _, s := range changed {
			address := ""
			if len(s.Status.LoadBalancer.Ingress) > 0 {
				address = s.Status.LoadBalancer.Ingress[0].IP
			}
			got = append(got, s.Name+"="+address)
		}
		if strings.Join(got, " ") != test.want || (err == nil) != (test.fails == "") || err != nil && !strings.Contains(err.Error(), test.fails) {
			t.Errorf("%s: %v, %v, want %s", name, got, err, test.want)
		}
	}
}

func TestRoutes(t *testing.T) {
	node := func(name, pods string, addresses ...string) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{PodCIDR: pods}}
		for _, a := range addresses {
			n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a})
		}
		return n
	}
	own, others := wantedRoutes([]*corev1.Node{
		node("self", "10.0.0.0/24", "192.168.0.1"), node("other", "10.0.1.0/24", "fd00::1", "192.168.0.2"), node("new", ""),
		node("unknown", "10.0.2.0/24"), node("six", "fd00::/64", "192.168.0.3"),
	}, "self")
	want := map[netip.Prefix]netip.Addr{netip.MustParsePrefix("10.0.1.0/24"): netip.MustParseAddr("192.168.0.2")}
	if own != netip.MustParsePrefix("10.0.0.0/24") || !reflect.DeepEqual(others, want) {
		t.Errorf("got %s, %v", own, others)
	}
	if plugins := fmt.Sprint(configuration(own)); !strings.Contains(plugins, "10.0.0.0/24") {
		t.Errorf("the configuration is %s", plugins)
	}
}
