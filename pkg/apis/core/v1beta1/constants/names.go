package constants

// Names of namespaces and the objects in them.
const (
	// GardenNamespace is the namespace of the landscape, in the garden and in Seeds.
	GardenNamespace = "garden"
	// PrefixProjectNamespace is the prefix of the namespaces of Projects.
	PrefixProjectNamespace = "garden-"
	// PrefixSeedNamespace is the prefix of the namespaces in the garden that belong to a Seed.
	PrefixSeedNamespace = "seed-"
	// PrefixExtensionNamespace is the prefix of the namespaces of extensions.
	PrefixExtensionNamespace = "extension-"
	// PrefixTechnicalID is the prefix of the namespaces of Shoots in a Seed.
	PrefixTechnicalID = "shoot--"
	// SystemSeedLeaseNamespace is the namespace in the garden with a lease for each Seed.
	SystemSeedLeaseNamespace = "gardener-system-seed-lease"
	// SystemShootIssuerNamespace is the namespace in the garden with the documents of managed issuers.
	SystemShootIssuerNamespace = "gardener-system-shoot-issuer"
	// SystemPublicNamespace is the namespace in the garden with what all users may read.
	SystemPublicNamespace = "gardener-system-public"
	// GardenerInfoName is the name of the ConfigMap with the version of the API server.
	GardenerInfoName = "gardener-info"
	// IstioSystemNamespace is the namespace of Istio.
	IstioSystemNamespace = "istio-system"
	// IstioIngressNamespace is the namespace of the ingress gateway.
	IstioIngressNamespace = "istio-ingress"
	// PrefixIstioIngressHandlerNamespace is the prefix of the namespaces of ingress gateways for ExposureClasses.
	PrefixIstioIngressHandlerNamespace = "istio-ingress-handler-"
	// IstioIngressGatewayName is the name of the Service of the ingress gateway.
	IstioIngressGatewayName = "istio-ingressgateway"
	// IstioIngressGatewayInternalName is the name of its internal Service.
	IstioIngressGatewayInternalName = "istio-ingressgateway-internal"
	// ClusterIdentityName is the name and key of the ConfigMap with the identity of a cluster.
	ClusterIdentityName = "cluster-identity"
	// ClusterIdentityOrigin is the key for who wrote that ConfigMap.
	ClusterIdentityOrigin = "origin"
	// ShootInfoName is the name of the ConfigMap with facts about a Shoot, in that Shoot.
	ShootInfoName = "shoot-info"
	// DefaultSchedulerName is the name of the scheduler of Shoots that name none.
	DefaultSchedulerName = "default-scheduler"
	// KubeconfigMountPath is the directory of pods with the kubeconfig for the Shoot.
	KubeconfigMountPath = "/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig"
	// GardenKubeconfigMountPath is the directory of pods with the kubeconfig for the garden.
	GardenKubeconfigMountPath = "/var/run/secrets/gardener.cloud/garden/generic-kubeconfig"
)
