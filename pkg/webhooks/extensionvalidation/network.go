package extensionvalidation

import (
	"net"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	ipv4 = "IPv4"
	ipv6 = "IPv6"
)

type networkSpec struct {
	Type        string   `json:"type"`
	PodCIDR     string   `json:"podCIDR"`
	ServiceCIDR string   `json:"serviceCIDR"`
	IPFamilies  []string `json:"ipFamilies"`
}

func checkNetwork(network *object[networkSpec]) field.ErrorList {
	spec := &network.Spec
	podPath, servicePath := specPath.Child("podCIDR"), specPath.Child("serviceCIDR")
	errs := required(text{specPath.Child("type"), spec.Type})
	errs = append(errs, checkIPFamilies(spec.IPFamilies)...)
	pods, podErrs := checkCIDR(podPath, spec.PodCIDR, spec.IPFamilies)
	services, serviceErrs := checkCIDR(servicePath, spec.ServiceCIDR, spec.IPFamilies)
	errs = append(append(errs, podErrs...), serviceErrs...)
	onlyIPv6 := slices.Equal(spec.IPFamilies, []string{ipv6})
	if pods != nil && services != nil && !onlyIPv6 && (pods.Contains(services.IP) || services.Contains(pods.IP)) {
		errs = append(errs, field.Invalid(servicePath, spec.ServiceCIDR, "must not overlap with podCIDR "+spec.PodCIDR))
	}
	return errs
}

func checkIPFamilies(families []string) field.ErrorList {
	seen := sets.New[string]()
	return each(families, specPath.Child("ipFamilies"), func(path *field.Path, family *string) field.ErrorList {
		switch {
		case *family != ipv4 && *family != ipv6:
			return field.ErrorList{field.NotSupported(path, *family, []string{ipv4, ipv6})}
		case seen.Has(*family):
			return field.ErrorList{field.Duplicate(path, *family)}
		}
		seen.Insert(*family)
		return nil
	})
}

// checkCIDR returns the network of a CIDR, or nil if the value is invalid. With two families the CIDR may belong to
// either. Without a family it must be IPv4.
func checkCIDR(path *field.Path, value string, families []string) (*net.IPNet, field.ErrorList) {
	if value == "" {
		return nil, field.ErrorList{missing(path)}
	}
	_, network, err := net.ParseCIDR(value)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(path, value, "must be a CIDR, such as 10.244.0.0/16 or 2001:db8::/64")}
	}
	if len(families) > 1 {
		return network, nil
	}
	family := ipv4
	if len(families) == 1 {
		family = families[0]
	}
	if isIPv4 := network.IP.To4() != nil; family == ipv4 && !isIPv4 || family == ipv6 && isIPv4 {
		return network, field.ErrorList{field.Invalid(path, value, "must be of the family "+family)}
	}
	return network, nil
}

func compareNetworks(spec, old *networkSpec) field.ErrorList {
	errs := immutable(
		change{specPath.Child("type"), spec.Type, old.Type},
		change{specPath.Child("podCIDR"), spec.PodCIDR, old.PodCIDR},
		change{specPath.Child("serviceCIDR"), spec.ServiceCIDR, old.ServiceCIDR},
	)
	if addsOrRemovesIPv6(spec.IPFamilies, old.IPFamilies) || addsOrRemovesIPv6(old.IPFamilies, spec.IPFamilies) {
		return errs
	}
	if slices.Equal(spec.IPFamilies, old.IPFamilies) {
		return errs
	}
	return append(errs, field.Forbidden(specPath.Child("ipFamilies"), "except that IPv6 can be added to and removed from IPv4: field is immutable"))
}

// addsOrRemovesIPv6 reports whether single is a single-stack and dual the corresponding dual-stack network.
func addsOrRemovesIPv6(single, dual []string) bool {
	return slices.Equal(single, []string{ipv4}) && slices.Equal(dual, []string{ipv4, ipv6})
}
