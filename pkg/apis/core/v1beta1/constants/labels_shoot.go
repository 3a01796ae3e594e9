package constants

// Labels of Shoots, Seeds, Projects and bindings.
const (
	// LabelShootStatus is the health of a Shoot: healthy, progressing, unhealthy or unknown.
	LabelShootStatus = "shoot.gardener.cloud/status"
	// LabelShootSelfHosted marks a self-hosted Shoot.
	LabelShootSelfHosted = "shoot.gardener.cloud/self-hosted"
	// LabelPrefixSeedName is the prefix of labels with the names of Seeds that an object belongs to.
	LabelPrefixSeedName = "name.seed.gardener.cloud/"
	// LabelSelfHostedShootCluster marks a Seed that is a self-hosted Shoot.
	LabelSelfHostedShootCluster = "seed.gardener.cloud/self-hosted-shoot-cluster"
	// LabelSeedNetwork is the kind of a Seed's network: private.
	LabelSeedNetwork = "seed.gardener.cloud/network"
	// LabelShootName is the name of the Shoot that an object belongs to.
	LabelShootName = "shoot.gardener.cloud/name"
	// LabelShootNamespace is the namespace of that Shoot.
	LabelShootNamespace = "shoot.gardener.cloud/namespace"
	// LabelDiscoveryPublic names the data of a Shoot that an object publishes: DiscoveryShootCA or serviceaccount.
	LabelDiscoveryPublic = "discovery.gardener.cloud/public"
	// DiscoveryShootCA is the value of LabelDiscoveryPublic of the certificate authority that clients verify the API server with.
	DiscoveryShootCA = "shoot-ca"
	// LabelSeedProvider is the infrastructure of a Seed.
	LabelSeedProvider = "seed.gardener.cloud/provider"
	// LabelSeedRegion is the region of a Seed.
	LabelSeedRegion = "seed.gardener.cloud/region"
	// LabelShootProvider is the infrastructure of a Shoot.
	LabelShootProvider = "shoot.gardener.cloud/provider"
	// LabelBackupProvider is the infrastructure that keeps backups.
	LabelBackupProvider = "backup.gardener.cloud/provider"
	// LabelNetworkingProvider is the network of a Shoot.
	LabelNetworkingProvider = "networking.shoot.gardener.cloud/provider"
	// LabelPrefixShootProvider is the prefix of labels with the infrastructures that credentials are for.
	LabelPrefixShootProvider = "provider.shoot.gardener.cloud/"
	// LabelProjectName is the name of the Project of a namespace.
	LabelProjectName = "project.gardener.cloud/name"
	// LabelReferenceSecretBinding marks an object that a SecretBinding refers to.
	LabelReferenceSecretBinding = "reference.gardener.cloud/secretbinding"
	// LabelReferenceCredentialsBinding marks an object that a CredentialsBinding refers to.
	LabelReferenceCredentialsBinding = "reference.gardener.cloud/credentialsbinding"
	// LabelControllerRegistrationName is the name of the ControllerRegistration of an extension's namespace.
	LabelControllerRegistrationName = "controllerregistration.core.gardener.cloud/name"
	// LabelAggregateToProjectMember adds the rules of a ClusterRole to those of members.
	LabelAggregateToProjectMember = "rbac.gardener.cloud/aggregate-to-project-member"
	// LabelAggregateToExtensionRole adds the rules of a ClusterRole to those of members with the role extension:<value>.
	LabelAggregateToExtensionRole = "rbac.gardener.cloud/aggregate-to-extension-role"
	// LabelEndpointAdvertise lets the address of an Ingress or Service be advertised.
	LabelEndpointAdvertise = "endpoint.shoot.gardener.cloud/advertise"
	// LabelEndpointApplication is the name of the application behind such an address.
	LabelEndpointApplication = "endpoint.shoot.gardener.cloud/application"
)
