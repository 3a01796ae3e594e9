package exposure

import (
	"fmt"
	"net/netip"
)

// AdvertisedAddress returns the address that an API server advertises in its cluster, where the API server proxy on each node
// serves it: the cluster IP of its Service in the seed, with an IPv4 address moved to 240.0.0.0/8. The address is unique in the
// seed, and in no network of a cluster. The error names an address that is not one.
func AdvertisedAddress(clusterIP string) (string, error) {
	address, err := netip.ParseAddr(clusterIP)
	if err != nil {
		return "", fmt.Errorf("the cluster IP %q of the API server's Service is not an IP address", clusterIP)
	}
	if address = address.Unmap(); address.Is6() {
		return address.String(), nil
	}
	octets := address.As4()
	octets[0] = 240
	return netip.AddrFrom4(octets).String(), nil
}
