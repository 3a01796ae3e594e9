package constants

// Names of users and groups, and of their rights.
const (
	// PrefixSeedUser is the prefix of the user of a Seed's gardenlet.
	PrefixSeedUser = "gardener.cloud:system:seed:"
	// SeedsGroup is the group of gardenlets of Seeds.
	SeedsGroup = "gardener.cloud:system:seeds"
	// PrefixShootUser is the prefix of the user of a self-hosted Shoot's gardenlet.
	PrefixShootUser = "gardener.cloud:system:shoot:"
	// ShootsGroup is the group of gardenlets of self-hosted Shoots.
	ShootsGroup = "gardener.cloud:system:shoots"
	// PrefixGardenadmUser is the prefix of the user that sets up a self-hosted Shoot.
	PrefixGardenadmUser = "gardener.cloud:gardenadm:shoot:"
	// PrefixNodeAgentUser is the prefix of the user of a node agent.
	PrefixNodeAgentUser = "gardener.cloud:node-agent:machine:"
	// NodeAgentsGroup is the group of node agents.
	NodeAgentsGroup = "gardener.cloud:node-agents"
	// PrefixAdminKubeconfigUser is the prefix of the user in a kubeconfig for administrators.
	PrefixAdminKubeconfigUser = "gardener.cloud:admin:"
	// PrefixViewerKubeconfigUser is the prefix of the user in a kubeconfig for viewers.
	PrefixViewerKubeconfigUser = "gardener.cloud:viewer:"
	// ShootSystemAdminsGroup is the group in a kubeconfig for administrators of the landscape.
	ShootSystemAdminsGroup = "gardener.cloud:system:admins"
	// ShootSystemViewersGroup is the group in a kubeconfig for viewers of the landscape.
	ShootSystemViewersGroup = "gardener.cloud:system:viewers"
	// ShootProjectAdminsGroup is the group in a kubeconfig for administrators of a Project.
	ShootProjectAdminsGroup = "gardener.cloud:project:admins"
	// ShootProjectViewersGroup is the group in a kubeconfig for viewers of a Project.
	ShootProjectViewersGroup = "gardener.cloud:project:viewers"
	// ClusterRoleReadOnly is the ClusterRole of viewers in a Shoot.
	ClusterRoleReadOnly = "gardener.cloud:system:read-only"
	// PrefixWorkloadIdentitySubject is the prefix of the subject of a WorkloadIdentity.
	PrefixWorkloadIdentitySubject = "gardener.cloud:workloadidentity:"
	// ProjectMemberOwner is the role of the owner of a Project.
	ProjectMemberOwner = "owner"
	// ProjectMemberAdmin is the role of members who may change all objects of a Project.
	ProjectMemberAdmin = "admin"
	// ProjectMemberViewer is the role of members who may read the objects of a Project.
	ProjectMemberViewer = "viewer"
	// ProjectMemberUserAccessManager is the role of members who may change the members of a Project.
	ProjectMemberUserAccessManager = "uam"
	// ProjectMemberServiceAccountManager is the role of members who may change the service accounts of a Project.
	ProjectMemberServiceAccountManager = "serviceaccountmanager"
	// PrefixProjectMemberExtension is the prefix of roles that extensions of the API define.
	PrefixProjectMemberExtension = "extension:"
)
