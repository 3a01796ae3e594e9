package controller

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
)

// TestAddresses checks which endpoints get connections.
func TestAddresses(t *testing.T) {
	service := &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "metrics", Port: 80}, {Name: "https", Port: 443}}}}
	port := func(name string, number int32) discoveryv1.EndpointPort {
		return discoveryv1.EndpointPort{Name: &name, Port: &number}
	}
	endpoint := func(address string, ready, serving *bool) discoveryv1.Endpoint {
		return discoveryv1.Endpoint{Addresses: []string{address, "192.0.2.99"}, Conditions: discoveryv1.EndpointConditions{Ready: ready, Serving: serving}}
	}
	yes, no := ptr.To(true), ptr.To(false)
	slice := func(endpoints ...discoveryv1.Endpoint) discoveryv1.EndpointSlice {
		return discoveryv1.EndpointSlice{Ports: []discoveryv1.EndpointPort{port("metrics", 8080), port("https", 6443)}, Endpoints: endpoints}
	}
	other := discoveryv1.EndpointSlice{Ports: []discoveryv1.EndpointPort{port("metrics", 8080)}, Endpoints: []discoveryv1.Endpoint{endpoint("192.0.2.50", yes, yes)}}
	for name, test := range map[string]struct {
		number int32
		slices []discoveryv1.EndpointSlice
		want   []string
	}{
		"ready ones":                   {443, []discoveryv1.EndpointSlice{slice(endpoint("192.0.2.1", yes, yes), endpoint("192.0.2.2", no, yes), endpoint("192.0.2.3", nil, nil)), other}, []string{"192.0.2.1:6443", "192.0.2.3:6443"}},
		"in two slices":                {443, []discoveryv1.EndpointSlice{slice(endpoint("192.0.2.1", yes, yes)), slice(endpoint("192.0.2.1", yes, yes))}, []string{"192.0.2.1:6443"}},
		"IPv6":                         {443, []discoveryv1.EndpointSlice{slice(endpoint("2001:db8::1", yes, yes))}, []string{"[2001:db8::1]:6443"}},
		"without a ready one, serving": {443, []discoveryv1.EndpointSlice{slice(endpoint("192.0.2.1", no, no), endpoint("192.0.2.2", no, yes))}, []string{"192.0.2.2:6443"}},
		"none":                         {443, []discoveryv1.EndpointSlice{slice(endpoint("192.0.2.1", no, no)), slice(discoveryv1.Endpoint{})}, nil},
		"another port":                 {80, []discoveryv1.EndpointSlice{other}, []string{"192.0.2.50:8080"}},
		"a port that is not there":     {22, []discoveryv1.EndpointSlice{other}, nil},
	} {
		if got := addressesOf(service, test.number, test.slices, func(int, func(int, int)) {}); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}
