package networkpolicies

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
)

// kind determines the policies of a namespace.
type kind int

const (
	// kindOther is a namespace without policies.
	kindOther kind = iota
	// kindWorkload is the namespace garden, and namespaces of shoots, extensions, or the configured selectors.
	kindWorkload
	// kindIstio is a namespace of Istio or of an ingress gateway.
	kindIstio
	// kindHandler is a namespace of the ingress gateway of an ExposureClass.
	kindHandler
)

func kindOf(name string, of map[string]string, additional []metav1.LabelSelector) (kind, error) {
	if name == constants.GardenNamespace {
		return kindWorkload, nil
	}
	for i := range additional {
		selector, err := metav1.LabelSelectorAsSelector(&additional[i])
		if err != nil {
			return kindOther, fmt.Errorf("controllers.networkPolicy.additionalNamespaceSelectors[%d]: %w", i, err)
		}
		if selector.Matches(labels.Set(of)) {
			return kindWorkload, nil
		}
	}
	switch of[constants.LabelGardenRole] {
	case constants.RoleShoot, constants.RoleExtension:
		return kindWorkload, nil
	case constants.RoleIstioSystem, constants.RoleIstioIngress:
		return kindIstio, nil
	}
	if _, found := of[constants.LabelExposureClassHandlerName]; found {
		return kindHandler, nil
	}
	return kindOther, nil
}

// Handles reports whether a namespace has policies. It returns an error if a selector is invalid.
func Handles(name string, of map[string]string, additional []metav1.LabelSelector) (bool, error) {
	kind, err := kindOf(name, of, additional)
	return kind != kindOther, err
}

// NamespaceSelectors returns selectors of all namespaces that have policies.
func NamespaceSelectors(additional []metav1.LabelSelector) []metav1.LabelSelector {
	var selectors []metav1.LabelSelector
	for _, role := range []string{constants.RoleShoot, constants.RoleExtension, constants.RoleIstioSystem, constants.RoleIstioIngress} {
		selectors = append(selectors, metav1.LabelSelector{MatchLabels: map[string]string{constants.LabelGardenRole: role}})
	}
	selectors = append(selectors,
		metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: constants.LabelExposureClassHandlerName, Operator: metav1.LabelSelectorOpExists},
		}},
		metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: constants.GardenNamespace}},
	)
	return append(selectors, additional...)
}

// ShootNetworks returns the declared and observed networks of a Shoot in CIDR notation.
func ShootNetworks(shoot *corev1beta1.Shoot) []string {
	var networks []string
	if declared := shoot.Spec.Networking; declared != nil {
		for _, network := range []*string{declared.Nodes, declared.Pods, declared.Services} {
			if text := ptr.Deref(network, ""); text != "" {
				networks = append(networks, text)
			}
		}
	}
	if observed := shoot.Status.Networking; observed != nil {
		networks = append(networks, observed.Nodes...)
		networks = append(networks, observed.Pods...)
		networks = append(networks, observed.Services...)
	}
	return networks
}

// APIServers returns the addresses in EndpointSlices of the Service default/kubernetes. Addresses that are not IP
// addresses are skipped.
func APIServers(endpointSlices []discoveryv1.EndpointSlice) []netip.AddrPort {
	var servers []netip.AddrPort
	for _, slice := range endpointSlices {
		for _, endpoint := range slice.Endpoints {
			for _, text := range endpoint.Addresses {
				address, err := netip.ParseAddr(text)
				if err != nil {
					continue
				}
				for _, port := range slice.Ports {
					if port.Port != nil {
						servers = append(servers, netip.AddrPortFrom(address, uint16(*port.Port))) //nolint:gosec // a TCP port
					}
				}
			}
		}
	}
	return servers
}
