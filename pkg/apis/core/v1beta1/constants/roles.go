package constants

// Values of the label gardener.cloud/role.
const (
	// RoleGarden marks the namespace garden.
	RoleGarden = "garden"
	// RoleSeed marks what belongs to a Seed.
	RoleSeed = "seed"
	// RoleShoot marks what belongs to a Shoot.
	RoleShoot = "shoot"
	// RoleProject marks the namespace of a Project.
	RoleProject = "project"
	// RoleExtensionProject marks the rights of members of a Project with a role that an extension of the API defines.
	RoleExtensionProject = "extension-project-role"
	// RoleGardenletRights marks the rights of gardenlets to objects by their names.
	RoleGardenletRights = "gardenlet-rights"
	// RoleExtension marks what belongs to an extension.
	RoleExtension = "extension"
	// RoleControlPlane marks a component of a control plane.
	RoleControlPlane = "controlplane"
	// RoleSystemComponent marks a component that runs in a Shoot for its own sake.
	RoleSystemComponent = "system-component"
	// RoleSeedSystemComponent marks a component that runs in a Seed for its own sake.
	RoleSeedSystemComponent = "seed-system-component"
	// RoleOptionalAddon marks an addon.
	RoleOptionalAddon = "optional-addon"
	// RoleLogging marks a component of logging.
	RoleLogging = "logging"
	// RoleMonitoring marks a component of monitoring.
	RoleMonitoring = "monitoring"
	// RoleObservability marks a component of logging or monitoring.
	RoleObservability = "observability"
	// RoleIstioSystem marks the namespace of Istio.
	RoleIstioSystem = "istio-system"
	// RoleIstioIngress marks the namespace of an ingress gateway.
	RoleIstioIngress = "istio-ingress"
	// RoleOperatingSystemConfig marks a Secret with the configuration of nodes.
	RoleOperatingSystemConfig = "operating-system-config"
	// RoleKubeconfig marks a Secret with a kubeconfig.
	RoleKubeconfig = "kubeconfig"
	// RoleCACluster marks an object with the authority of a cluster.
	RoleCACluster = "ca-cluster"
	// RoleCAKubelet marks an object with the authority of kubelets.
	RoleCAKubelet = "ca-kubelet"
	// RoleCAClient marks an object with the authority of clients.
	RoleCAClient = "ca-client"
	// RoleSSHKeyPair marks a Secret with an SSH key pair.
	RoleSSHKeyPair = "ssh-keypair"
	// RoleDefaultDomain marks a Secret with a domain for Shoots without one.
	RoleDefaultDomain = "default-domain"
	// RoleInternalDomain marks a Secret with the internal domain.
	RoleInternalDomain = "internal-domain"
	// RoleGlobalMonitoring marks a Secret with the password for the metrics of all Shoots.
	RoleGlobalMonitoring = "global-monitoring"
	// RoleGlobalShootRemoteWriteMonitoring marks a Secret with the password for sending metrics of Shoots.
	RoleGlobalShootRemoteWriteMonitoring = "global-shoot-remote-write-monitoring"
	// RoleAlerting marks a Secret with the account that sends alerts.
	RoleAlerting = "alerting"
	// RoleControlPlaneWildcardCert marks a Secret with the wildcard certificate of a Seed.
	RoleControlPlaneWildcardCert = "controlplane-cert"
	// RoleGardenWildcardCert marks a Secret with the wildcard certificate of the garden.
	RoleGardenWildcardCert = "garden-cert"
	// RoleExposureClassHandler marks what belongs to the handler of an ExposureClass.
	RoleExposureClassHandler = "exposureclass-handler"
	// RoleShootServiceAccountIssuer marks a Secret with the host of managed issuers.
	RoleShootServiceAccountIssuer = "shoot-service-account-issuer"
	// RoleHelmPullSecret marks a Secret with registry credentials for charts.
	RoleHelmPullSecret = "helm-pull-secret"
	// RoleOCICABundle marks a Secret with the certificates of a registry.
	RoleOCICABundle = "oci-ca-bundle"
	// RoleResourceReference marks a copy of an object that an owner refers to.
	RoleResourceReference = "resource-reference"
)
