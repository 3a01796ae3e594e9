package v1beta1

// Values of fields that are plain strings.
const (
	// ArchitectureAMD64 is the architecture of 64-bit x86 CPUs.
	ArchitectureAMD64 = "amd64"
	// ArchitectureARM64 is the architecture of 64-bit ARM CPUs.
	ArchitectureARM64 = "arm64"
	// CloudProfileReferenceKindCloudProfile is the kind of a reference to a CloudProfile.
	CloudProfileReferenceKindCloudProfile = "CloudProfile"
	// CloudProfileReferenceKindNamespacedCloudProfile is the kind of a reference to a NamespacedCloudProfile.
	CloudProfileReferenceKindNamespacedCloudProfile = "NamespacedCloudProfile"
	// ControllerDeploymentTypeHelm is the type of ControllerDeployments with a Helm chart.
	ControllerDeploymentTypeHelm = "helm"
	// DNSUnmanaged is the type of a DNS provider that stands for a domain without records.
	DNSUnmanaged = "unmanaged"
	// KubernetesDashboardAuthModeToken lets users of the dashboard authenticate with a token.
	KubernetesDashboardAuthModeToken = "token"
	// SeedResourceShoots is the resource in a Seed's capacity for the number of Shoots.
	SeedResourceShoots = "shoots"
)

// Kinds of extension resources, which a ControllerRegistration may name.
const (
	KindBackupBucket            = "BackupBucket"
	KindBackupEntry             = "BackupEntry"
	KindBastion                 = "Bastion"
	KindContainerRuntime        = "ContainerRuntime"
	KindControlPlane            = "ControlPlane"
	KindDNSRecord               = "DNSRecord"
	KindExtension               = "Extension"
	KindInfrastructure          = "Infrastructure"
	KindNetwork                 = "Network"
	KindOperatingSystemConfig   = "OperatingSystemConfig"
	KindSelfHostedShootExposure = "SelfHostedShootExposure"
	KindWorker                  = "Worker"
)
