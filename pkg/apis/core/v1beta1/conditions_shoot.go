package v1beta1

// The types of conditions of a Shoot.
const (
	// ShootAPIServerAvailable reports whether the API server answers.
	ShootAPIServerAvailable ConditionType = "APIServerAvailable"
	// ShootControlPlaneHealthy reports whether the components of the control plane are healthy.
	ShootControlPlaneHealthy ConditionType = "ControlPlaneHealthy"
	// ShootObservabilityComponentsHealthy reports whether the components of logging and monitoring are healthy.
	ShootObservabilityComponentsHealthy ConditionType = "ObservabilityComponentsHealthy"
	// ShootEveryNodeReady reports whether all nodes are ready. A Shoot without worker pools does not have it.
	ShootEveryNodeReady ConditionType = "EveryNodeReady"
	// ShootSystemComponentsHealthy reports whether the components that run in the cluster for its own sake are healthy.
	ShootSystemComponentsHealthy ConditionType = "SystemComponentsHealthy"
	// ShootGardenletReady reports whether the gardenlet of a self-hosted Shoot shows signs of life.
	ShootGardenletReady ConditionType = "GardenletReady"
)

// The types of constraints of a Shoot.
const (
	// ShootHibernationPossible reports whether the cluster can be switched off and on again.
	ShootHibernationPossible ConditionType = "HibernationPossible"
	// ShootMaintenancePreconditionsSatisfied reports whether maintenance can work.
	ShootMaintenancePreconditionsSatisfied ConditionType = "MaintenancePreconditionsSatisfied"
	// ShootCACertificateValiditiesAcceptable is present while an authority expires within a year.
	ShootCACertificateValiditiesAcceptable ConditionType = "CACertificateValiditiesAcceptable"
	// ShootCRDsWithProblematicConversionWebhooks is present while a kind with several stored versions depends on a
	// conversion webhook.
	ShootCRDsWithProblematicConversionWebhooks ConditionType = "CRDsWithProblematicConversionWebhooks"
	// ShootManualInPlaceWorkersUpdated is present while worker pools wait for an in-place update by the user.
	ShootManualInPlaceWorkersUpdated ConditionType = "ManualInPlaceWorkersUpdated"
	// ShootBackupReady is present while backups are declared for the Shoot, but not taken.
	ShootBackupReady ConditionType = "BackupReady"
	// ShootHasIgnoredManagedResources is present while ManagedResources are ignored.
	ShootHasIgnoredManagedResources ConditionType = "HasIgnoredManagedResources"
	// ShootPreservedFailedMachinesAbsent is present while failed machines are preserved.
	ShootPreservedFailedMachinesAbsent ConditionType = "PreservedFailedMachinesAbsent"
	// ShootAutomaticCredentialsRotationPossible is present while the maintenance window lies within hibernation.
	ShootAutomaticCredentialsRotationPossible ConditionType = "AutomaticCredentialsRotationPossible"
	// ShootReadyForMigration reports whether the Seed that the control plane moves to is ready.
	ShootReadyForMigration ConditionType = "ReadyForMigration"
	// ShootDualStackNodesMigrationReady reports whether nodes have addresses of both IP families.
	ShootDualStackNodesMigrationReady ConditionType = "DualStackNodesMigrationReady"
	// ShootDNSServiceMigrationReady reports whether the DNS service has addresses of both IP families.
	ShootDNSServiceMigrationReady ConditionType = "DNSServiceMigrationReady"
	// ShootUsesUnifiedHTTPProxyPort reports whether the cluster uses one port for all proxied connections.
	ShootUsesUnifiedHTTPProxyPort ConditionType = "UsesUnifiedHTTPProxyPort"
)

// The types of conditions of a move while the control plane serves, in their order.
const (
	// LiveMigrationSourceEtcdPreparedForPeerJoin reports whether etcd accepts members on the new Seed.
	LiveMigrationSourceEtcdPreparedForPeerJoin ConditionType = "SourceEtcdPreparedForPeerJoin"
	// LiveMigrationDestinationEtcdPeersJoined reports whether the members on the new Seed have joined.
	LiveMigrationDestinationEtcdPeersJoined ConditionType = "DestinationEtcdPeersJoined"
	// LiveMigrationMigrateExtensionsNeededBeforeKubeAPIServer reports whether the extensions that the API server needs have
	// moved.
	LiveMigrationMigrateExtensionsNeededBeforeKubeAPIServer ConditionType = "MigrateExtensionsNeededBeforeKubeAPIServer"
	// LiveMigrationDestinationKubeAPIServerReady reports whether the API server on the new Seed is ready.
	LiveMigrationDestinationKubeAPIServerReady ConditionType = "DestinationKubeAPIServerReady"
	// LiveMigrationMigrateDNSRecords reports whether DNS records point to the new Seed.
	LiveMigrationMigrateDNSRecords ConditionType = "MigrateDNSRecords"
	// LiveMigrationEtcdMigrationComplete reports whether etcd runs on the new Seed only.
	LiveMigrationEtcdMigrationComplete ConditionType = "EtcdMigrationComplete"
	// LiveMigrationSourceSeedCleanup reports whether the old Seed is cleaned up.
	LiveMigrationSourceSeedCleanup ConditionType = "SourceSeedCleanup"
	// LiveMigrationCompleted reports whether the move is done.
	LiveMigrationCompleted ConditionType = "MigrationCompleted"
)
