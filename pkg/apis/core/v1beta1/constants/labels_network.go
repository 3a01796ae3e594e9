package constants

// Labels with which pods request network connections. Their value is NetworkPolicyAllowed.
const (
	// LabelNetworkPolicyToDNS allows connections to DNS servers.
	LabelNetworkPolicyToDNS = "networking.gardener.cloud/to-dns"
	// LabelNetworkPolicyToPublicNetworks allows connections to public addresses.
	LabelNetworkPolicyToPublicNetworks = "networking.gardener.cloud/to-public-networks"
	// LabelNetworkPolicyToPrivateNetworks allows connections to private addresses.
	LabelNetworkPolicyToPrivateNetworks = "networking.gardener.cloud/to-private-networks"
	// LabelNetworkPolicyToBlockedCIDRs allows connections to blocked ranges.
	LabelNetworkPolicyToBlockedCIDRs = "networking.gardener.cloud/to-blocked-cidrs"
	// LabelNetworkPolicyToRuntimeAPIServer allows connections to the API server of the cluster.
	LabelNetworkPolicyToRuntimeAPIServer = "networking.gardener.cloud/to-runtime-apiserver"
	// LabelNetworkPolicyToSeedAPIServer allows connections to the API server of the Seed.
	LabelNetworkPolicyToSeedAPIServer = "networking.gardener.cloud/to-seed-apiserver"
	// LabelNetworkPolicyToAPIServer allows connections to the API server of the Shoot.
	LabelNetworkPolicyToAPIServer = "networking.gardener.cloud/to-apiserver"
	// LabelNetworkPolicyToKubelet allows connections to kubelets.
	LabelNetworkPolicyToKubelet = "networking.gardener.cloud/to-kubelet"
	// LabelNetworkPolicyFromSeed allows connections from the Seed.
	LabelNetworkPolicyFromSeed = "networking.gardener.cloud/from-seed"
	// LabelNetworkPolicyFromPrometheus allows connections from Prometheus.
	LabelNetworkPolicyFromPrometheus = "networking.gardener.cloud/from-prometheus"
	// LabelNetworkPolicyAccessTargetAPIServer allows connections to the API server that a namespace has.
	LabelNetworkPolicyAccessTargetAPIServer = "networking.gardener.cloud/access-target-apiserver"
	// NetworkPolicyAllowed is the value of these labels.
	NetworkPolicyAllowed = "allowed"
	// NetworkPolicyAllScrapeTargets stands for the pods that scrape metrics.
	NetworkPolicyAllScrapeTargets = "all-scrape-targets"
	// NetworkPolicyAllSeedScrapeTargets stands for the pods that scrape metrics of the Seed.
	NetworkPolicyAllSeedScrapeTargets = "all-seed-scrape-targets"
	// NetworkPolicyAllGardenScrapeTargets stands for the pods that scrape metrics of the garden.
	NetworkPolicyAllGardenScrapeTargets = "all-garden-scrape-targets"
	// NetworkPolicyAllWebhookTargets stands for the pods that call webhooks.
	NetworkPolicyAllWebhookTargets = "all-webhook-targets"
	// NetworkPolicyAllShoots stands for the namespaces of Shoots.
	NetworkPolicyAllShoots = "all-shoots"
	// NetworkPolicyExtensions stands for the namespaces of extensions.
	NetworkPolicyExtensions = "extensions"
	// NetworkPolicyAllIstioIngresses stands for the namespaces of ingress gateways.
	NetworkPolicyAllIstioIngresses = "all-istio-ingresses"
)
