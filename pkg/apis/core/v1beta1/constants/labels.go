package constants

// Labels that apply to several kinds.
const (
	// LabelGardenRole is the role of an object.
	LabelGardenRole = "gardener.cloud/role"
	// LabelGardenPurpose is the purpose of an object: machineclass or shoot-static-manifest.
	LabelGardenPurpose = "gardener.cloud/purpose"
	// LabelUpdateRestriction lets gardenlets alone write an object.
	LabelUpdateRestriction = "gardener.cloud/update-restriction"
	// LabelDeletionProtected protects a CustomResourceDefinition from deletion without confirmation.
	LabelDeletionProtected = "gardener.cloud/deletion-protected"
	// LabelConditionType is the condition that the health of a ManagedResource counts for.
	LabelConditionType = "care.gardener.cloud/condition-type"
	// LabelWebhookRemediationExclude keeps a webhook configuration from being corrected.
	LabelWebhookRemediationExclude = "remediation.webhook.shoot.gardener.cloud/exclude"
	// LabelShootNoCleanup keeps an object from being deleted before its cluster.
	LabelShootNoCleanup = "shoot.gardener.cloud/no-cleanup"
	// LabelEvictionRequirements marks objects for which a controller manages when pods may be evicted.
	LabelEvictionRequirements = "autoscaling.gardener.cloud/eviction-requirements"
	// LabelSchedulingPurpose is the purpose of a ConfigMap for the scheduler: region-config.
	LabelSchedulingPurpose = "scheduling.gardener.cloud/purpose"
	// LabelAPIServerExposure with the value APIServerExposureGardenerManaged marks the Service and the Deployment of an API server
	// that is reached through shared gateways. Extensions then leave the exposure alone.
	LabelAPIServerExposure = "core.gardener.cloud/apiserver-exposure"
	// APIServerExposureGardenerManaged is the value of LabelAPIServerExposure.
	APIServerExposureGardenerManaged = "gardener-managed"
	// LabelExposureClassHandlerName is the name of the handler of an ExposureClass.
	LabelExposureClassHandlerName = "handler.exposureclass.gardener.cloud/name"
	// LabelAutoUpdateGardenletHelmChartRef lets the operator raise the version of a Gardenlet.
	LabelAutoUpdateGardenletHelmChartRef = "operator.gardener.cloud/auto-update-gardenlet-helm-chart-ref"
	// LabelCustomExtensionsPermissions marks a ClusterRole with further rights of extensions.
	LabelCustomExtensionsPermissions = "authorization.gardener.cloud/custom-extensions-permissions"
	// LabelSecurityPurpose is the purpose of a Secret: workload-identity-token-requestor.
	LabelSecurityPurpose = "security.gardener.cloud/purpose"
	// LabelWorkloadIdentityProvider is the infrastructure that a Secret with a token is for.
	LabelWorkloadIdentityProvider = "workloadidentity.security.gardener.cloud/provider"
)
