package constants

// Labels of Secrets that the secrets manager keeps.
const (
	// LabelSecretsManagerName is the name of a Secret without the checksum.
	LabelSecretsManagerName = "name"
	// LabelSecretsManagerManagedBy is the program that keeps a Secret: secrets-manager.
	LabelSecretsManagerManagedBy = "managed-by"
	// LabelSecretsManagerIdentity is the component that keeps a Secret.
	LabelSecretsManagerIdentity = "manager-identity"
	// LabelSecretsManagerChecksumOfConfig is the checksum of the configuration of a Secret.
	LabelSecretsManagerChecksumOfConfig = "checksum-of-config"
	// LabelSecretsManagerChecksumOfSigningCA is the checksum of the authority that signed a Secret's certificate.
	LabelSecretsManagerChecksumOfSigningCA = "checksum-of-signing-ca"
	// LabelSecretsManagerBundleFor is the name of the authority that a Secret has the bundle of.
	LabelSecretsManagerBundleFor = "bundle-for"
	// LabelSecretsManagerPersist marks a Secret that is stored in the ShootState.
	LabelSecretsManagerPersist = "persist"
	// LabelSecretsManagerLastRotationInitiationTime is the time at which the rotation of a Secret was started last, in
	// Unix seconds.
	LabelSecretsManagerLastRotationInitiationTime = "last-rotation-initiation-time"
	// LabelSecretsManagerIssuedAtTime is the time at which a Secret's certificate was issued, in Unix seconds.
	LabelSecretsManagerIssuedAtTime = "issued-at-time"
	// LabelSecretsManagerValidUntilTime is the time until which a Secret's certificate is valid, in Unix seconds.
	LabelSecretsManagerValidUntilTime = "valid-until-time"
	// LabelSecretsManagerRenewAfterValidityPercentage is the share of its validity after which a certificate is renewed,
	// in percent.
	LabelSecretsManagerRenewAfterValidityPercentage = "renew-after-validity-percentage"
	// LabelSecretsManagerUseDataForName is the name for which the data of a Secret is used.
	LabelSecretsManagerUseDataForName = "secrets-manager-use-data-for-name"
)
