package v1beta1

// The types of conditions of a Seed.
const (
	// SeedGardenletReady reports whether the gardenlet shows signs of life.
	SeedGardenletReady ConditionType = "GardenletReady"
	// SeedBackupBucketsReady reports whether the buckets of the Seed are ready.
	SeedBackupBucketsReady ConditionType = "BackupBucketsReady"
	// SeedExtensionsReady reports whether the extensions in the Seed are installed and healthy.
	SeedExtensionsReady ConditionType = "ExtensionsReady"
	// SeedBackupReady is present while the Seed declares a backup. It reports whether backups of its Shoots are taken.
	SeedBackupReady ConditionType = "BackupReady"
	// SeedSystemComponentsHealthy reports whether the components that run in the Seed for its own sake are healthy.
	SeedSystemComponentsHealthy ConditionType = "SeedSystemComponentsHealthy"
	// SeedEmergencyStopShootReconciliations is present while the reconciliation of all Shoots is stopped.
	SeedEmergencyStopShootReconciliations ConditionType = "EmergencyStopShootReconciliations"
)

// The types of conditions of a ControllerInstallation.
const (
	// ControllerInstallationValid reports whether the chart and its values can be read.
	ControllerInstallationValid ConditionType = "Valid"
	// ControllerInstallationInstalled reports whether the extension is installed.
	ControllerInstallationInstalled ConditionType = "Installed"
	// ControllerInstallationHealthy reports whether the extension is healthy.
	ControllerInstallationHealthy ConditionType = "Healthy"
	// ControllerInstallationProgressing reports whether the extension is being rolled out.
	ControllerInstallationProgressing ConditionType = "Progressing"
	// ControllerInstallationRequired reports whether something needs the extension.
	ControllerInstallationRequired ConditionType = "Required"
)

// Reasons that several kinds have in common.
const (
	// ReasonConditionInitialized goes with Unknown: the condition has not been checked yet.
	ReasonConditionInitialized = "ConditionInitialized"
	// ReasonConditionCheckError goes with Unknown: the check could not run.
	ReasonConditionCheckError = "ConditionCheckError"
	// ReasonConditionNotChecked goes with True: the check does not apply, since the cluster is switched off.
	ReasonConditionNotChecked = "ConditionNotChecked"
	// ReasonStatusUnknown goes with Unknown: the gardenlet shows no signs of life.
	ReasonStatusUnknown = "StatusUnknown"
	// ReasonMissingManagedResourceCondition goes with False: a ManagedResource lacks a condition.
	ReasonMissingManagedResourceCondition = "MissingManagedResourceCondition"
	// ReasonOutdatedStatus goes with False: the conditions of an object are older than its specification.
	ReasonOutdatedStatus = "OutdatedStatus"
	// ReasonProgressingRolloutStuck goes with False: a roll-out takes longer than it may.
	ReasonProgressingRolloutStuck = "ProgressingRolloutStuck"
	// ReasonManagedResourceListingFailed goes with False: ManagedResources could not be listed.
	ReasonManagedResourceListingFailed = "ManagedResourceListingFailed"
)
