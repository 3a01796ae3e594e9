// Package config reads the configuration file of a controller-manager.
package config

import (
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/apis/controllermanager/v1alpha1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/configfile"
)

// format is how the file is read.
var format = configfile.Format[v1alpha1.ControllerManagerConfiguration]{
	Kind: v1alpha1.Kind, SetDefaults: v1alpha1.SetDefaults, Validate: validate,
}

// Load reads, defaults and validates the configuration file at path. The error lists everything that is wrong, with the paths of the fields.
func Load(path string) (*v1alpha1.ControllerManagerConfiguration, error) { return format.Load(path) }

// Parse decodes, defaults and validates a configuration in YAML or JSON. Decoding is strict: unknown fields and keys that are set twice are
// errors.
func Parse(data []byte) (*v1alpha1.ControllerManagerConfiguration, error) { return format.Parse(data) }

// validate checks a configuration with its defaults.
func validate(c *v1alpha1.ControllerManagerConfiguration) field.ErrorList {
	var errs field.ErrorList
	oneOf := func(path, value string, allowed ...string) {
		if !slices.Contains(allowed, value) {
			errs = append(errs, field.NotSupported(field.NewPath(path), value, allowed))
		}
	}
	oneOf("apiVersion", c.APIVersion, v1alpha1.APIVersion)
	oneOf("kind", c.Kind, v1alpha1.Kind)
	oneOf("logLevel", c.LogLevel, "info", "debug", "error")
	oneOf("logFormat", c.LogFormat, "json", "text")
	errs = append(errs, validateControllers(&c.Controllers, field.NewPath("controllers"))...)
	return errs
}

// validateControllers checks the settings of the controllers.
func validateControllers(c *v1alpha1.ControllersConfiguration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	concurrencies := c.Concurrencies()
	for _, name := range slices.Sorted(maps.Keys(concurrencies)) {
		if syncs := *concurrencies[name].ConcurrentSyncs; syncs < 1 {
			errs = append(errs, field.Invalid(path.Child(name, "concurrentSyncs"), syncs, "must be at least 1"))
		}
	}
	errs = append(errs, validateThresholds(c.SeedExtensionsCheck, corev1beta1.SeedExtensionsReady, path.Child("seedExtensionsCheck"))...)
	errs = append(errs, validateThresholds(c.SeedBackupBucketsCheck, corev1beta1.SeedBackupBucketsReady, path.Child("seedBackupBucketsCheck"))...)
	positive := map[*field.Path]*metav1.Duration{
		path.Child("cacheSyncTimeout"): c.CacheSyncTimeout, path.Child("bastion", "maxLifetime"): c.Bastion.MaxLifetime,
		path.Child("managedSeedSet", "syncPeriod"): c.ManagedSeedSet.SyncPeriod, path.Child("project", "staleSyncPeriod"): c.Project.StaleSyncPeriod,
		path.Child("seed", "syncPeriod"): c.Seed.SyncPeriod, path.Child("seed", "monitorPeriod"): c.Seed.MonitorPeriod,
		path.Child("seed", "shootMonitorPeriod"): c.Seed.ShootMonitorPeriod, path.Child("shootQuota", "syncPeriod"): c.ShootQuota.SyncPeriod,
		path.Child("seedExtensionsCheck", "syncPeriod"):    c.SeedExtensionsCheck.SyncPeriod,
		path.Child("seedBackupBucketsCheck", "syncPeriod"): c.SeedBackupBucketsCheck.SyncPeriod,
	}
	if c.Event != nil {
		positive[path.Child("event", "ttlNonShootEvents")] = c.Event.TTLNonShootEvents
	}
	for at, value := range positive {
		if value.Duration <= 0 {
			errs = append(errs, field.Invalid(at, value.Duration.String(), "must be more than 0"))
		}
	}
	for at, value := range map[*field.Path]time.Duration{
		path.Child("shootHibernation", "triggerDeadlineDuration"): c.ShootHibernation.TriggerDeadlineDuration.Duration,
		path.Child("shootRetry", "retryPeriod"):                   c.ShootRetry.RetryPeriod.Duration,
		path.Child("shootRetry", "retryJitterPeriod"):             c.ShootRetry.RetryJitterPeriod.Duration,
	} {
		if value < 0 {
			errs = append(errs, field.Invalid(at, value.String(), "must not be negative"))
		}
	}
	if *c.ManagedSeedSet.MaxShootRetries < 0 {
		errs = append(errs, field.Invalid(path.Child("managedSeedSet", "maxShootRetries"), *c.ManagedSeedSet.MaxShootRetries, "must not be negative"))
	}
	return append(errs, validateProject(c.Project, path.Child("project"))...)
}

// validateProject checks the settings of the controllers of Projects.
func validateProject(c *v1alpha1.Project, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for name, days := range map[string]int{"minimumLifetimeDays": *c.MinimumLifetimeDays, "staleGracePeriodDays": *c.StaleGracePeriodDays} {
		if days < 0 {
			errs = append(errs, field.Invalid(path.Child(name), days, "must not be negative"))
		}
	}
	if *c.StaleExpirationTimeDays < *c.StaleGracePeriodDays {
		errs = append(errs, field.Invalid(path.Child("staleExpirationTimeDays"), *c.StaleExpirationTimeDays, "must be at least staleGracePeriodDays"))
	}
	for i, quota := range c.Quotas {
		at := path.Child("quotas").Index(i)
		if quota.Config == nil {
			errs = append(errs, field.Required(at.Child("config"), "must be a ResourceQuota"))
		}
		if _, err := metav1.LabelSelectorAsSelector(quota.ProjectSelector); err != nil {
			errs = append(errs, field.Invalid(at.Child("projectSelector"), quota.ProjectSelector, err.Error()))
		}
	}
	return errs
}

// validateThresholds checks how long a condition of Seeds is Progressing.
func validateThresholds(c *v1alpha1.SeedCheck, kind corev1beta1.ConditionType, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, threshold := range c.ConditionThresholds {
		at := path.Child("conditionThresholds").Index(i)
		if threshold.Type != string(kind) {
			errs = append(errs, field.NotSupported(at.Child("type"), threshold.Type, []corev1beta1.ConditionType{kind}))
		}
		if threshold.Duration.Duration < 0 {
			errs = append(errs, field.Invalid(at.Child("duration"), threshold.Duration.Duration.String(), "must not be negative"))
		}
	}
	return errs
}
