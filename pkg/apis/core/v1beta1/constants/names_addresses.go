package constants

// Names of advertised addresses and DNS records.
const (
	// AdvertisedAddressExternal is the address under the domain of the Shoot.
	AdvertisedAddressExternal = "external"
	// AdvertisedAddressInternal is the address under the internal domain.
	AdvertisedAddressInternal = "internal"
	// AdvertisedAddressUnmanaged is the address of the load balancer of a Shoot without a domain.
	AdvertisedAddressUnmanaged = "unmanaged"
	// AdvertisedAddressWildcardTLSSeedBound is the address with the wildcard certificate of the Seed.
	AdvertisedAddressWildcardTLSSeedBound = "wildcard-tls-seed-bound"
	// AdvertisedAddressServiceAccountIssuer is the URL of the issuer of tokens of service accounts.
	AdvertisedAddressServiceAccountIssuer = "service-account-issuer"
	// AdvertisedAddressVirtualGarden is the address of the garden.
	AdvertisedAddressVirtualGarden = "virtual-garden"
	// DNSRecordInternalName is the name of the DNSRecord under the internal domain.
	DNSRecordInternalName = "internal"
	// DNSRecordExternalName is the name of the DNSRecord under the domain of the Shoot.
	DNSRecordExternalName = "external"
	// DNSRecordIngressName is the name of the DNSRecord for Ingresses.
	DNSRecordIngressName = "ingress"
	// PrefixAPIServerHost is the prefix of the host name of an API server.
	PrefixAPIServerHost = "api."
)
