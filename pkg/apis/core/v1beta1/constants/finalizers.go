package constants

// Finalizers.
const (
	// GardenerName is the finalizer of objects that the gardenlet or the controller manager handles.
	GardenerName = "gardener"
	// FinalizerExternalGardener is the finalizer that referenced Secrets had in the past.
	FinalizerExternalGardener = "gardener.cloud/gardener"
	// FinalizerReferenceProtection is the finalizer of objects that others refer to.
	FinalizerReferenceProtection = "gardener.cloud/reference-protection"
	// FinalizerOperator is the finalizer of the operator's objects.
	FinalizerOperator = "gardener.cloud/operator"
	// FinalizerControllerDeployment is the finalizer of ControllerDeployments.
	FinalizerControllerDeployment = "core.gardener.cloud/controllerdeployment"
	// FinalizerControllerRegistration is the finalizer of ControllerRegistrations.
	FinalizerControllerRegistration = "core.gardener.cloud/controllerregistration"
	// FinalizerControllerInstallation is the finalizer of ControllerInstallations.
	FinalizerControllerInstallation = "core.gardener.cloud/controllerinstallation"
	// FinalizerBackupBucket is the finalizer of what a BackupBucket refers to.
	FinalizerBackupBucket = "core.gardener.cloud/backupbucket"
	// FinalizerShootState is the finalizer of ShootStates.
	FinalizerShootState = "core.gardener.cloud/shootstate"
	// FinalizerSecretBinding is the finalizer of what a SecretBinding refers to.
	FinalizerSecretBinding = "gardener.cloud/secretbinding"
	// FinalizerCredentialsBinding is the finalizer of what a CredentialsBinding refers to.
	FinalizerCredentialsBinding = "gardener.cloud/credentialsbinding"
	// PrefixExtensionFinalizer is the prefix of the finalizers of extensions.
	PrefixExtensionFinalizer = "extensions.gardener.cloud/"
	// FinalizerTerraformer is the finalizer of Terraform's objects.
	FinalizerTerraformer = "gardener.cloud/terraformer"
	// FinalizerResourceManager is the finalizer of ManagedResources.
	FinalizerResourceManager = "resources.gardener.cloud/gardener-resource-manager"
	// FinalizerMachineControllerManager is the finalizer of machines.
	FinalizerMachineControllerManager = "machine.sapcloud.io/machine-controller-manager"
)
