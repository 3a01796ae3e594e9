package v1alpha1

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/internal/defaulting"
)

// ControllersConfiguration configures the controllers. Its fields are those of Gardener. docs/controller-manager.md says which of the
// controllers run.
type ControllersConfiguration struct {
	// CacheSyncTimeout is how long the start waits for the caches. Default: 2m.
	// +optional
	CacheSyncTimeout *metav1.Duration `json:"cacheSyncTimeout,omitempty"`
	// Bastion configures the deletion of Bastions.
	// +optional
	Bastion *Bastion `json:"bastion,omitempty"`
	// CertificateSigningRequest configures the approval of certificates of gardenlets.
	// +optional
	CertificateSigningRequest *Concurrency `json:"certificateSigningRequest,omitempty"`
	// CloudProfile configures the protection of CloudProfiles in use.
	// +optional
	CloudProfile *Concurrency `json:"cloudProfile,omitempty"`
	// ControllerDeployment configures the protection of ControllerDeployments in use.
	// +optional
	ControllerDeployment *Concurrency `json:"controllerDeployment,omitempty"`
	// ControllerRegistration configures the controllers that have extensions installed.
	// +optional
	ControllerRegistration *Concurrency `json:"controllerRegistration,omitempty"`
	// CredentialsBinding configures the protection of CredentialsBindings in use, and of their credentials.
	// +optional
	CredentialsBinding *Concurrency `json:"credentialsBinding,omitempty"`
	// Event configures the deletion of Events that are not about Shoots. Without it, the controller does not run.
	// +optional
	Event *Event `json:"event,omitempty"`
	// ExposureClass configures the protection of ExposureClasses in use.
	// +optional
	ExposureClass *Concurrency `json:"exposureClass,omitempty"`
	// GardenletRights configures the rights of gardenlets to objects by name. Gardener does not have this field.
	// +optional
	GardenletRights *GardenletRights `json:"gardenletRights,omitempty"`
	// ManagedSeedSet configures the controller of ManagedSeedSets.
	// +optional
	ManagedSeedSet *ManagedSeedSet `json:"managedSeedSet,omitempty"`
	// NamespacedCloudProfile configures the status and the protection of NamespacedCloudProfiles.
	// +optional
	NamespacedCloudProfile *Concurrency `json:"namespacedCloudProfile,omitempty"`
	// Project configures the controllers of Projects.
	// +optional
	Project *Project `json:"project,omitempty"`
	// Quota configures the protection of Quotas in use.
	// +optional
	Quota *Concurrency `json:"quota,omitempty"`
	// SecretBinding configures the protection of SecretBindings in use, and of their Secrets.
	// +optional
	SecretBinding *Concurrency `json:"secretBinding,omitempty"`
	// Seed configures the controllers of Seeds.
	// +optional
	Seed *Seed `json:"seed,omitempty"`
	// SeedBackupBucketsCheck configures the condition BackupBucketsReady of Seeds.
	// +optional
	SeedBackupBucketsCheck *SeedCheck `json:"seedBackupBucketsCheck,omitempty"`
	// SeedExtensionsCheck configures the condition ExtensionsReady of Seeds.
	// +optional
	SeedExtensionsCheck *SeedCheck `json:"seedExtensionsCheck,omitempty"`
	// SeedReference configures the protection of objects that Seeds refer to.
	// +optional
	SeedReference *Concurrency `json:"seedReference,omitempty"`
	// ShootConditions configures the conditions of Shoots that are Seeds.
	// +optional
	ShootConditions *Concurrency `json:"shootConditions,omitempty"`
	// ShootHibernation configures the hibernation schedules of Shoots.
	// +optional
	ShootHibernation *ShootHibernation `json:"shootHibernation,omitempty"`
	// ShootMaintenance configures the maintenance of Shoots.
	// +optional
	ShootMaintenance *ShootMaintenance `json:"shootMaintenance,omitempty"`
	// ShootMigration configures the constraint ReadyForMigration of Shoots.
	// +optional
	ShootMigration *Concurrency `json:"shootMigration,omitempty"`
	// ShootQuota configures the expiry of Shoots.
	// +optional
	ShootQuota *ShootQuota `json:"shootQuota,omitempty"`
	// ShootReference configures the protection of objects that Shoots refer to.
	// +optional
	ShootReference *Concurrency `json:"shootReference,omitempty"`
	// ShootRetry configures the retry of failed Shoots.
	// +optional
	ShootRetry *ShootRetry `json:"shootRetry,omitempty"`
	// ShootState configures the protection of ShootStates during migrations.
	// +optional
	ShootState *Concurrency `json:"shootState,omitempty"`
	// ShootStatusLabel configures the label with the health of Shoots.
	// +optional
	ShootStatusLabel *Concurrency `json:"shootStatusLabel,omitempty"`
}

// Concurrencies returns the concurrency of each controller by the name of its field, for defaults and validation. It allocates the
// configurations that are unset, except that of Events, which turns its controller on.
func (c *ControllersConfiguration) Concurrencies() map[string]*Concurrency {
	all := map[string]*Concurrency{
		"bastion":                   &defaulting.Object(&c.Bastion).Concurrency,
		"certificateSigningRequest": defaulting.Object(&c.CertificateSigningRequest),
		"cloudProfile":              defaulting.Object(&c.CloudProfile),
		"controllerDeployment":      defaulting.Object(&c.ControllerDeployment),
		"controllerRegistration":    defaulting.Object(&c.ControllerRegistration),
		"credentialsBinding":        defaulting.Object(&c.CredentialsBinding),
		"exposureClass":             defaulting.Object(&c.ExposureClass),
		"managedSeedSet":            &defaulting.Object(&c.ManagedSeedSet).Concurrency,
		"namespacedCloudProfile":    defaulting.Object(&c.NamespacedCloudProfile),
		"project":                   &defaulting.Object(&c.Project).Concurrency,
		"quota":                     defaulting.Object(&c.Quota),
		"secretBinding":             defaulting.Object(&c.SecretBinding),
		"seed":                      &defaulting.Object(&c.Seed).Concurrency,
		"seedBackupBucketsCheck":    &defaulting.Object(&c.SeedBackupBucketsCheck).Concurrency,
		"seedExtensionsCheck":       &defaulting.Object(&c.SeedExtensionsCheck).Concurrency,
		"seedReference":             defaulting.Object(&c.SeedReference),
		"shootConditions":           defaulting.Object(&c.ShootConditions),
		"shootHibernation":          &defaulting.Object(&c.ShootHibernation).Concurrency,
		"shootMaintenance":          &defaulting.Object(&c.ShootMaintenance).Concurrency,
		"shootMigration":            defaulting.Object(&c.ShootMigration),
		"shootQuota":                &defaulting.Object(&c.ShootQuota).Concurrency,
		"shootReference":            defaulting.Object(&c.ShootReference),
		"shootRetry":                &defaulting.Object(&c.ShootRetry).Concurrency,
		"shootState":                defaulting.Object(&c.ShootState),
		"shootStatusLabel":          defaulting.Object(&c.ShootStatusLabel),
	}
	if c.Event != nil {
		all["event"] = &c.Event.Concurrency
	}
	return all
}

// Concurrency configures the concurrency of a controller.
type Concurrency struct {
	// ConcurrentSyncs is the number of objects that are reconciled concurrently. Default: 5. Rule: at least 1.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
}

// GardenletRights configures the rights of gardenlets to objects by name.
type GardenletRights struct {
	// Enabled is false if the seed authorizer decides about gardenlets. Then the controller deletes all Roles and RoleBindings that it
	// has created. Default: true.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
}

// Bastion configures the deletion of Bastions.
type Bastion struct {
	Concurrency `json:",inline"`

	// MaxLifetime is the age at which a Bastion is deleted regardless of heartbeats. Default: 24h. Rule: more than 0.
	// +optional
	MaxLifetime *metav1.Duration `json:"maxLifetime,omitempty"`
}

// Event configures the deletion of Events that are not about Shoots.
type Event struct {
	Concurrency `json:",inline"`

	// TTLNonShootEvents is the age at which they are deleted. Default: 1h. Rule: more than 0.
	// +optional
	TTLNonShootEvents *metav1.Duration `json:"ttlNonShootEvents,omitempty"`
}

// ManagedSeedSet configures the controller of ManagedSeedSets.
type ManagedSeedSet struct {
	Concurrency `json:",inline"`

	// MaxShootRetries is how often a failed Shoot is retried. Default: 3. Rule: not negative.
	// +optional
	MaxShootRetries *int `json:"maxShootRetries,omitempty"`
	// SyncPeriod is the time between two checks. Default: 30m. Rule: more than 0.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
}

// Project configures the controllers of Projects.
type Project struct {
	Concurrency `json:",inline"`

	// MinimumLifetimeDays is the age in days before which a Project is never stale. Default: 30. Rule: not negative.
	// +optional
	MinimumLifetimeDays *int `json:"minimumLifetimeDays,omitempty"`
	// Quotas are the ResourceQuotas of the namespaces of Projects. The first whose selector matches is used.
	// +optional
	Quotas []QuotaConfiguration `json:"quotas,omitempty"`
	// StaleGracePeriodDays is the time in days for which a stale Project has no time of deletion. Default: 14. Rule: not negative.
	// +optional
	StaleGracePeriodDays *int `json:"staleGracePeriodDays,omitempty"`
	// StaleExpirationTimeDays is the time in days after which a stale Project is deleted. Default: 90. Rule: at least staleGracePeriodDays.
	// +optional
	StaleExpirationTimeDays *int `json:"staleExpirationTimeDays,omitempty"`
	// StaleSyncPeriod is the time between two checks. Default: 12h. Rule: more than 0.
	// +optional
	StaleSyncPeriod *metav1.Duration `json:"staleSyncPeriod,omitempty"`
}

// Seed configures the controllers of Seeds.
type Seed struct {
	Concurrency `json:",inline"`

	// MonitorPeriod is the age of the Lease of a gardenlet at which GardenletReady becomes Unknown. Default: 40s. Rule: more than 0.
	// +optional
	MonitorPeriod *metav1.Duration `json:"monitorPeriod,omitempty"`
	// ShootMonitorPeriod is how long GardenletReady is Unknown before the conditions of its Shoots are, too. Default: five times monitorPeriod. Rule: more than 0.
	// +optional
	ShootMonitorPeriod *metav1.Duration `json:"shootMonitorPeriod,omitempty"`
	// SyncPeriod is accepted as Gardener has it. Default: 10s. Rule: more than 0.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
}

// ShootHibernation configures the hibernation schedules of Shoots.
type ShootHibernation struct {
	Concurrency `json:",inline"`

	// TriggerDeadlineDuration is how long after its time a schedule is still executed. Default: 2h. Rule: not negative.
	// +optional
	TriggerDeadlineDuration *metav1.Duration `json:"triggerDeadlineDuration,omitempty"`
}

// ShootMaintenance configures the maintenance of Shoots.
type ShootMaintenance struct {
	Concurrency `json:",inline"`

	// EnableShootControlPlaneRestarter restarts control planes in the maintenance of a Shoot. Default: true.
	// +optional
	EnableShootControlPlaneRestarter *bool `json:"enableShootControlPlaneRestarter,omitempty"`
	// EnableShootCoreAddonRestarter restarts core addons in the maintenance of a Shoot. Default: unset, which means false.
	// +optional
	EnableShootCoreAddonRestarter *bool `json:"enableShootCoreAddonRestarter,omitempty"`
}

// ShootQuota configures the expiry of Shoots.
type ShootQuota struct {
	Concurrency `json:",inline"`

	// SyncPeriod is accepted as Gardener has it. Default: 60m. Rule: more than 0.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
}

// ShootRetry configures the retry of failed Shoots.
type ShootRetry struct {
	Concurrency `json:",inline"`

	// RetryPeriod is the time from a failure to its retry. Default: 10m. Rule: not negative.
	// +optional
	RetryPeriod *metav1.Duration `json:"retryPeriod,omitempty"`
	// RetryJitterPeriod is the maximum of the random time that is added. Default: 5m. Rule: not negative.
	// +optional
	RetryJitterPeriod *metav1.Duration `json:"retryJitterPeriod,omitempty"`
}

// QuotaConfiguration is the ResourceQuota of the namespaces of some Projects.
type QuotaConfiguration struct {
	// Config is the ResourceQuota. Its name and namespace are not used.
	Config *corev1.ResourceQuota `json:"config"`
	// ProjectSelector selects Projects by their labels. Default: empty, which selects all.
	// +optional
	ProjectSelector *metav1.LabelSelector `json:"projectSelector,omitempty"`
}

// SeedCheck configures the controller of a condition of Seeds.
type SeedCheck struct {
	Concurrency `json:",inline"`

	// SyncPeriod is accepted as Gardener has it, and not used: the checked objects are watched. Default: 30s. Rule: more than 0.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
	// ConditionThresholds are how long a failing condition is Progressing before it becomes False. Default: none, which
	// means immediately. Rule: type is that of the condition, and the duration is not negative.
	// +optional
	ConditionThresholds []ConditionThreshold `json:"conditionThresholds,omitempty"`
}

// ConditionThreshold is how long a condition that fails is Progressing.
type ConditionThreshold struct {
	// Type of the condition.
	Type string `json:"type"`
	// Duration for which it is Progressing.
	Duration metav1.Duration `json:"duration"`
}

// Threshold returns how long a condition of a type is Progressing; 0 for not at all.
func (c *SeedCheck) Threshold(kind corev1beta1.ConditionType) time.Duration {
	for _, threshold := range c.ConditionThresholds {
		if threshold.Type == string(kind) {
			return threshold.Duration.Duration
		}
	}
	return 0
}
