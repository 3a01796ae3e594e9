package constants

// Annotations of Shoots.
const (
	// AnnotationShootIgnore keeps the gardenlet from reconciling a Shoot.
	AnnotationShootIgnore = "shoot.gardener.cloud/ignore"
	// AnnotationShootAcceptEarlierState accepts that the garden was restored to an earlier state of a Shoot. Its value is the generation that
	// the Shoot had before.
	AnnotationShootAcceptEarlierState = "shoot.gardener.cloud/accept-earlier-state"
	// AnnotationShootSyncPeriod is the time between two reconciliations of a Shoot.
	AnnotationShootSyncPeriod = "shoot.gardener.cloud/sync-period"
	// AnnotationShootSkipReadiness keeps the flow from waiting for the readiness of components.
	AnnotationShootSkipReadiness = "shoot.gardener.cloud/skip-readiness"
	// AnnotationShootSkipCleanup keeps the flow from deleting objects in the cluster before the cluster itself.
	AnnotationShootSkipCleanup = "shoot.gardener.cloud/skip-cleanup"
	// AnnotationShootIgnoreAlerts silences the alerts of a Shoot.
	AnnotationShootIgnoreAlerts = "shoot.gardener.cloud/ignore-alerts"
	// AnnotationShootExpirationTimestamp is the time at which a Shoot under quota is deleted, as RFC 3339.
	AnnotationShootExpirationTimestamp = "shoot.gardener.cloud/expiration-timestamp"
	// AnnotationShootDisableIstioTLSTermination keeps the ingress gateway from terminating the TLS connections of a
	// Shoot.
	AnnotationShootDisableIstioTLSTermination = "shoot.gardener.cloud/disable-istio-tls-termination"
	// AnnotationShootTasks is the tasks that the next reconciliation executes, separated by commas.
	AnnotationShootTasks = "shoot.gardener.cloud/tasks"
	// AnnotationShootCleanupWebhooksFinalizeGracePeriodSeconds is the time after which finalizers of webhook
	// configurations are removed, in seconds.
	AnnotationShootCleanupWebhooksFinalizeGracePeriodSeconds = "shoot.gardener.cloud/cleanup-webhooks-finalize-grace-period-seconds"
	// AnnotationShootCleanupExtendedAPIsFinalizeGracePeriodSeconds is the time after which finalizers of custom
	// resources and API services are removed, in seconds.
	AnnotationShootCleanupExtendedAPIsFinalizeGracePeriodSeconds = "shoot.gardener.cloud/cleanup-extended-apis-finalize-grace-period-seconds"
	// AnnotationShootCleanupKubernetesResourcesFinalizeGracePeriodSeconds is the time after which finalizers of other
	// objects are removed, in seconds.
	AnnotationShootCleanupKubernetesResourcesFinalizeGracePeriodSeconds = "shoot.gardener.cloud/cleanup-kubernetes-resources-finalize-grace-period-seconds"
	// AnnotationShootCloudConfigExecutionMaxDelaySeconds is the time over which nodes spread the application of a new
	// configuration, in seconds: 1800 at most, 300 without a value.
	AnnotationShootCloudConfigExecutionMaxDelaySeconds = "shoot.gardener.cloud/cloud-config-execution-max-delay-seconds"
	// AnnotationShootMaintenanceWindow is the maintenance window of a Shoot, on objects of the Vertical Pod Autoscaler.
	AnnotationShootMaintenanceWindow = "shoot.gardener.cloud/maintenance-window"
	// AnnotationShootUID is the unique identifier of a Shoot, on its namespace in the Seed.
	AnnotationShootUID = "shoot.gardener.cloud/uid"
	// AnnotationShootCleanupKubernetesResourcesStartTime is the time at which the deletion of objects in the cluster
	// began, on its namespace in the Seed.
	AnnotationShootCleanupKubernetesResourcesStartTime = "shoot.gardener.cloud/cleanup-kubernetes-resources-start-time"
	// AnnotationMaintenanceOperation requests operations in the next maintenance window.
	AnnotationMaintenanceOperation = "maintenance.gardener.cloud/operation"
	// AnnotationMaintenanceNeedsRetryOperation requests a retry of a failed Shoot in the next maintenance window.
	AnnotationMaintenanceNeedsRetryOperation = "maintenance.shoot.gardener.cloud/needs-retry-operation"
	// AnnotationAuthenticationIssuer defines who publishes the documents of the issuer of a Shoot's tokens.
	AnnotationAuthenticationIssuer = "authentication.gardener.cloud/issuer"
	// AnnotationControlPlaneScaleDownDisabled keeps the components of a control plane from being scaled down.
	AnnotationControlPlaneScaleDownDisabled = "alpha.control-plane.scaling.shoot.gardener.cloud/scale-down-disabled"
	// AnnotationControlPlaneHighAvailabilityVPN switches the highly available VPN of a control plane on or off.
	AnnotationControlPlaneHighAvailabilityVPN = "alpha.control-plane.shoot.gardener.cloud/high-availability-vpn"
	// AnnotationControlPlaneVPNVPAUpdateDisabled keeps the pods of the VPN from being scaled vertically.
	AnnotationControlPlaneVPNVPAUpdateDisabled = "alpha.control-plane.shoot.gardener.cloud/vpn-vpa-update-disabled"
	// AnnotationControlPlaneVPNAutoMTU lets the VPN find its packet size.
	AnnotationControlPlaneVPNAutoMTU = "alpha.control-plane.shoot.gardener.cloud/vpn-auto-mtu"
	// AnnotationMigrationLiveMigrate requests a move of a control plane without downtime.
	AnnotationMigrationLiveMigrate = "migration.gardener.cloud/live-migrate"
	// AnnotationMigrationAllowDistantRegions allows the move of a control plane to a region that is far away.
	AnnotationMigrationAllowDistantRegions = "migration.gardener.cloud/allow-distant-regions"
	// AnnotationCSIMigrationKubernetesVersion is the first version in which a Shoot uses CSI drivers.
	AnnotationCSIMigrationKubernetesVersion = "alpha.csimigration.shoot.extensions.gardener.cloud/kubernetes-version"
	// AnnotationShootEmergencyStopReconciliations stops the reconciliation of all Shoots of a Seed.
	AnnotationShootEmergencyStopReconciliations = "shoot.gardener.cloud/emergency-stop-reconciliations"
)
