package constants

// Annotations of other kinds.
const (
	// AnnotationBackupEntryForceDeletion lets a BackupEntry be deleted before its grace period is over.
	AnnotationBackupEntryForceDeletion = "backupentry.core.gardener.cloud/force-deletion"
	// AnnotationSeedExposure is how the API servers of a Seed are exposed: Istio, GatewayAPI, LoadBalancer or ClusterIP.
	AnnotationSeedExposure = "seed.gardener.cloud/exposure"
	// AnnotationGardenExposure is how the API server of the virtual garden is exposed: Istio, LoadBalancer or ClusterIP.
	AnnotationGardenExposure = "operator.gardener.cloud/exposure"
	// AnnotationPodSecurityEnforce is the pod security level of an extension's namespace.
	AnnotationPodSecurityEnforce = "security.gardener.cloud/pod-security-enforce"
	// AnnotationGenericTokenKubeconfigSecretName is the name of the Secret with the kubeconfig that components share, on
	// Clusters.
	AnnotationGenericTokenKubeconfigSecretName = "generic-token-kubeconfig.secret.gardener.cloud/name"
	// AnnotationGeneratedSecretNamespace is the namespace in which the Secret of a bucket is generated.
	AnnotationGeneratedSecretNamespace = "backupbucket.extensions.gardener.cloud/generated-secret-namespace"
	// AnnotationNamespaceProject is the unique identifier of the Project of a namespace.
	AnnotationNamespaceProject = "namespace.gardener.cloud/project"
	// AnnotationNamespaceKeepAfterProjectDeletion keeps a namespace when its Project is deleted.
	AnnotationNamespaceKeepAfterProjectDeletion = "namespace.gardener.cloud/keep-after-project-deletion"
	// AnnotationNamespaceCreatedByProjectController marks a namespace that was created for its Project.
	AnnotationNamespaceCreatedByProjectController = "namespace.gardener.cloud/created-by-project-controller"
	// AnnotationProjectSkipStaleCheck keeps a Project from being deleted because it is not used.
	AnnotationProjectSkipStaleCheck = "project.gardener.cloud/skip-stale-check"
	// AnnotationDNSProvider is the type of the DNS service, on Secrets with a domain.
	AnnotationDNSProvider = "dns.gardener.cloud/provider"
	// AnnotationDNSDomain is the domain of such a Secret.
	AnnotationDNSDomain = "dns.gardener.cloud/domain"
	// AnnotationDNSZone is the zone of such a Secret.
	AnnotationDNSZone = "dns.gardener.cloud/zone"
	// AnnotationDNSDefaultDomainPriority is the priority of such a Secret's domain among the default ones.
	AnnotationDNSDefaultDomainPriority = "dns.gardener.cloud/domain-default-priority"
	// AnnotationDomainClaimed is the time of the request that claimed a domain for a Shoot.
	AnnotationDomainClaimed = "dns.gardener.cloud/claimed-at"
	// AnnotationDNSIPStack is the IP families of a DNSRecord: ipv4, ipv6 or dual-stack.
	AnnotationDNSIPStack = "dns.gardener.cloud/ip-stack"
	// AnnotationWorkloadIdentityNamespace is the namespace of the WorkloadIdentity for which a Secret has a token.
	AnnotationWorkloadIdentityNamespace = "workloadidentity.security.gardener.cloud/namespace"
	// AnnotationWorkloadIdentityName is the name of that WorkloadIdentity.
	AnnotationWorkloadIdentityName = "workloadidentity.security.gardener.cloud/name"
	// AnnotationWorkloadIdentityContextObject is the object for which that token is used, as JSON.
	AnnotationWorkloadIdentityContextObject = "workloadidentity.security.gardener.cloud/context-object"
	// AnnotationWorkloadIdentityTokenRenewTimestamp is the time at which that token is renewed.
	AnnotationWorkloadIdentityTokenRenewTimestamp = "workloadidentity.security.gardener.cloud/token-renew-timestamp"
	// AnnotationSchedulingCloudProfiles is the CloudProfiles that a ConfigMap with distances between regions is for,
	// separated by commas.
	AnnotationSchedulingCloudProfiles = "scheduling.gardener.cloud/cloudprofiles"
	// AnnotationMigrationInterRegionDistanceThreshold is the distance above which a region is far away.
	AnnotationMigrationInterRegionDistanceThreshold = "migration.gardener.cloud/inter-region-distance-threshold"
	// AnnotationProtectFromDeletion keeps a ManagedSeedSet from deleting a replica.
	AnnotationProtectFromDeletion = "seedmanagement.gardener.cloud/protect-from-deletion"
	// AnnotationExtensionsServiceAccountSelector selects the service accounts of extensions that a ClusterRole is bound
	// to, as JSON.
	AnnotationExtensionsServiceAccountSelector = "authorization.gardener.cloud/extensions-serviceaccount-selector"
	// AnnotationMachinesWithoutManager on a ControllerRegistration says that its extension makes the machines of Workers
	// itself, so that control planes need no machine-controller-manager and no cluster-autoscaler. It is specific to Trellis.
	AnnotationMachinesWithoutManager = "worker.extensions.gardener.cloud/without-machine-controller-manager"
	// AnnotationMachinesGivenUp on a ShootState says that its state of machines is complete and final, because nothing in the Seed that the
	// control plane leaves works on them any more. It is removed when they are restored. It is specific to Trellis.
	AnnotationMachinesGivenUp = "shootstate.core.gardener.cloud/machines-given-up"
)
