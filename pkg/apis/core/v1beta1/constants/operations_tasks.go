package constants

// Tasks of a Shoot, in the annotation shoot.gardener.cloud/tasks.
const (
	// ShootTaskDeployInfrastructure deploys the infrastructure.
	ShootTaskDeployInfrastructure = "deployInfrastructure"
	// ShootTaskDeployDNSRecordInternal deploys the internal DNS record.
	ShootTaskDeployDNSRecordInternal = "deployDNSRecordInternal"
	// ShootTaskDeployDNSRecordExternal deploys the external DNS record.
	ShootTaskDeployDNSRecordExternal = "deployDNSRecordExternal"
	// ShootTaskDeployDNSRecordIngress deploys the DNS record for Ingresses.
	ShootTaskDeployDNSRecordIngress = "deployDNSRecordIngress"
	// ShootTaskRestartControlPlanePods restarts the pods of the control plane.
	ShootTaskRestartControlPlanePods = "restartControlPlanePods"
	// ShootTaskRestartCoreAddons restarts the addons.
	ShootTaskRestartCoreAddons = "restartCoreAddons"
	// ShootTaskUpdateNodeAgentSecretName gives the Secrets that configure nodes new names.
	ShootTaskUpdateNodeAgentSecretName = "updateGardenerNodeAgentSecretName"
)
