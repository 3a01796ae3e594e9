package shoot

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/trellis-k8s/trellis/pkg/dnsvalues"
)

// TestAddressesHaveAnOrder checks that the order in which a load balancer reports its addresses changes nothing.
func TestAddressesHaveAnOrder(t *testing.T) {
	service := func(names ...string) *corev1.Service {
		found := &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}}
		for _, name := range names {
			found.Status.LoadBalancer.Ingress = append(found.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{Hostname: name})
		}
		return found
	}
	first, second := dnsvalues.AddressesOf(service("b.example.org", "a.example.org", "")), dnsvalues.AddressesOf(service("a.example.org", "b.example.org"))
	if !slices.Equal(first, second) {
		t.Errorf("%v and %v", first, second)
	}
	if _, values := dnsvalues.Of([]string{"b.example.org", "a.example.org"}); !slices.Equal(values, []string{"a.example.org"}) {
		t.Errorf("the record has %v", values)
	}
	in, other := rested(), rested()
	in.Addresses, other.Addresses = first, second
	one, err := in.digest()
	two, failed := other.digest()
	if err != nil || failed != nil || one != two {
		t.Errorf("the order of addresses counts as a declaration: %v, %v", err, failed)
	}
}
