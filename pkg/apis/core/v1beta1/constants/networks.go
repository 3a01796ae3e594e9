package constants

// Ranges that no Seed and no Shoot may use, in CIDR notation.
const (
	// ReservedVPNRangeIPv6 is the range of the VPN.
	ReservedVPNRangeIPv6 = "fd8f:6d53:b97a:1::/96"
	// ReservedAPIServerProxyRange is the range of the proxies for API servers.
	ReservedAPIServerProxyRange = "240.0.0.0/8"
	// ReservedSeedPodsRange is the range to which the VPN maps the pods of Seeds.
	ReservedSeedPodsRange = "241.0.0.0/8"
	// ReservedShootNodesRange is the range to which the VPN maps the nodes of Shoots.
	ReservedShootNodesRange = "242.0.0.0/8"
	// ReservedShootServicesRange is the range to which the VPN maps the Services of Shoots.
	ReservedShootServicesRange = "243.0.0.0/8"
	// ReservedShootPodsRange is the range to which the VPN maps the pods of Shoots.
	ReservedShootPodsRange = "244.0.0.0/8"
)
