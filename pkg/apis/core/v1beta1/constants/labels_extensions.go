package constants

// Labels that name the extensions that an object uses. The type of the extension follows the prefix.
const (
	// LabelPrefixExtension is the prefix for extensions of kind Extension.
	LabelPrefixExtension = "extensions.extensions.gardener.cloud/"
	// LabelPrefixProviderExtension is the prefix for infrastructures.
	LabelPrefixProviderExtension = "provider.extensions.gardener.cloud/"
	// LabelPrefixDNSRecordExtension is the prefix for DNS services.
	LabelPrefixDNSRecordExtension = "dnsrecord.extensions.gardener.cloud/"
	// LabelPrefixNetworkingExtension is the prefix for networks.
	LabelPrefixNetworkingExtension = "networking.extensions.gardener.cloud/"
	// LabelPrefixOperatingSystemConfigExtension is the prefix for operating systems.
	LabelPrefixOperatingSystemConfigExtension = "operatingsystemconfig.extensions.gardener.cloud/"
	// LabelPrefixContainerRuntimeExtension is the prefix for container runtimes.
	LabelPrefixContainerRuntimeExtension = "containerruntime.extensions.gardener.cloud/"
	// LabelPrefixSelfHostedShootExposureExtension is the prefix for exposures of self-hosted Shoots.
	LabelPrefixSelfHostedShootExposureExtension = "selfhostedshootexposure.extensions.gardener.cloud/"
	// LabelMutatedByControlPlaneWebhook lets the webhook of the infrastructure change an object.
	LabelMutatedByControlPlaneWebhook = "provider.extensions.gardener.cloud/mutated-by-controlplane-webhook"
)
