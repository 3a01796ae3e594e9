package shoot

import (
	"strings"

	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/component/kubeapiserver"
)

// internalHost returns the host name of the API server in the internal domain of the Seed, or an empty string if the Seed has none.
func (in Inputs) internalHost() string {
	internal := in.Seed.Spec.DNS.Internal
	if internal == nil {
		return ""
	}
	domain := internal.Domain
	if !strings.Contains(domain, "internal") {
		domain = "internal." + domain
	}
	return constants.PrefixAPIServerHost + in.Shoot.Name + "." + in.Project + "." + domain
}

// externalHost returns the host name of the API server in the domain of the Shoot, or an empty string if the Shoot has none.
func (in Inputs) externalHost() string {
	if dns := in.Shoot.Spec.DNS; dns != nil {
		if domain := ptr.Deref(dns.Domain, ""); domain != "" {
			return constants.PrefixAPIServerHost + domain
		}
	}
	return ""
}

// insideHost returns the host name of the API server for clients in the seed.
func (in Inputs) insideHost() string { return kubeapiserver.Name + "." + in.Namespace + ".svc" }

// outsideHost returns the host name of the API server for clients outside the seed. A Shoot without a domain is only
// reachable from the seed.
func (in Inputs) outsideHost() string {
	for _, host := range []string{in.internalHost(), in.externalHost()} {
		if host != "" {
			return host
		}
	}
	return in.insideHost()
}

// hosts returns the host names in the server certificate of the API server for clients outside the control plane.
func (in Inputs) hosts() []string {
	hosts := []string{in.Namespace}
	for _, host := range []string{in.internalHost(), in.externalHost()} {
		if host != "" {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// advertised returns status.advertisedAddresses.
func (in Inputs) advertised() []corev1beta1.ShootAdvertisedAddress {
	var addresses []corev1beta1.ShootAdvertisedAddress
	add := func(name, host string) {
		if host != "" {
			addresses = append(addresses, corev1beta1.ShootAdvertisedAddress{Name: name, URL: "https://" + host})
		}
	}
	add(constants.AdvertisedAddressExternal, in.externalHost())
	add(constants.AdvertisedAddressInternal, in.internalHost())
	if len(addresses) == 0 {
		add(constants.AdvertisedAddressUnmanaged, in.insideHost())
	}
	issuer, _ := kubeapiserver.Issuer(in.server(), in.outsideHost())
	return append(addresses, corev1beta1.ShootAdvertisedAddress{Name: constants.AdvertisedAddressServiceAccountIssuer, URL: issuer})
}
