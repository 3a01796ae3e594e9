// Package dnsvalues computes what DNS records point to.
package dnsvalues

import (
	"cmp"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
)

// Of returns the type and values of a record for addresses. A record has one type. IPv4 takes precedence over
// IPv6, and both over host names.
func Of(addresses []string) (extensionsv1alpha1.DNSRecordType, []string) {
	found := map[extensionsv1alpha1.DNSRecordType][]string{}
	for _, address := range addresses {
		kind := extensionsv1alpha1.DNSRecordTypeCNAME
		if ip, err := netip.ParseAddr(address); err == nil {
			kind = extensionsv1alpha1.DNSRecordTypeAAAA
			if ip.Unmap().Is4() {
				kind = extensionsv1alpha1.DNSRecordTypeA
			}
		}
		found[kind] = append(found[kind], address)
	}
	for _, kind := range []extensionsv1alpha1.DNSRecordType{extensionsv1alpha1.DNSRecordTypeA, extensionsv1alpha1.DNSRecordTypeAAAA} {
		if values := found[kind]; len(values) > 0 {
			slices.Sort(values)
			return kind, values
		}
	}
	names := slices.Sorted(slices.Values(found[extensionsv1alpha1.DNSRecordTypeCNAME]))
	return extensionsv1alpha1.DNSRecordTypeCNAME, names[:min(len(names), 1)]
}

// Reduce returns what a cache keeps of a Service: what [AddressesOf] reads, and its metadata without annotations and managedFields.
func Reduce(service *corev1.Service) *corev1.Service {
	reduced := &corev1.Service{ObjectMeta: service.ObjectMeta}
	reduced.Annotations, reduced.ManagedFields = nil, nil
	reduced.Spec.Type, reduced.Spec.ClusterIPs = service.Spec.Type, service.Spec.ClusterIPs
	reduced.Status.LoadBalancer = service.Status.LoadBalancer
	return reduced
}

// AddressesOf returns the addresses of a Service for DNS records, sorted: those of its load balancer, or its cluster IPs if
// it has another type. Load balancers report them in any order, which must change neither records nor anything else.
func AddressesOf(service *corev1.Service) []string {
	addresses := slices.Clone(service.Spec.ClusterIPs)
	if service.Spec.Type == corev1.ServiceTypeLoadBalancer {
		addresses = nil
		for _, ingress := range service.Status.LoadBalancer.Ingress {
			addresses = append(addresses, cmp.Or(ingress.IP, ingress.Hostname))
		}
	}
	addresses = slices.DeleteFunc(addresses, func(address string) bool { return address == "" || address == corev1.ClusterIPNone })
	slices.Sort(addresses)
	return addresses
}
