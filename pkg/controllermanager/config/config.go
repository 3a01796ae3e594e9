// Package config reads the configuration file of a controller-manager.
package config

import (
	"slices"
	"time"

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
	for name, controller := range map[string]*v1alpha1.Concurrency{
		"controllerDeployment": c.Controllers.ControllerDeployment, "controllerRegistration": c.Controllers.ControllerRegistration,
		"seedExtensionsCheck": &c.Controllers.SeedExtensionsCheck.Concurrency, "shootStatusLabel": c.Controllers.ShootStatusLabel,
		"shootRetry":       &c.Controllers.ShootRetry.Concurrency,
		"shootHibernation": &c.Controllers.ShootHibernation.Concurrency,
	} {
		if *controller.ConcurrentSyncs < 1 {
			errs = append(errs, field.Invalid(field.NewPath("controllers", name, "concurrentSyncs"), *controller.ConcurrentSyncs, "must be at least 1"))
		}
	}
	for i, threshold := range c.Controllers.SeedExtensionsCheck.ConditionThresholds {
		path := field.NewPath("controllers", "seedExtensionsCheck", "conditionThresholds").Index(i)
		if threshold.Type != string(corev1beta1.SeedExtensionsReady) {
			errs = append(errs, field.NotSupported(path.Child("type"), threshold.Type, []corev1beta1.ConditionType{corev1beta1.SeedExtensionsReady}))
		}
		if threshold.Duration.Duration < 0 {
			errs = append(errs, field.Invalid(path.Child("duration"), threshold.Duration.Duration.String(), "must not be negative"))
		}
	}
	for _, duration := range []struct {
		controller, field string
		value             time.Duration
	}{
		{"shootHibernation", "triggerDeadlineDuration", c.Controllers.ShootHibernation.TriggerDeadlineDuration.Duration},
		{"shootRetry", "retryPeriod", c.Controllers.ShootRetry.RetryPeriod.Duration},
		{"shootRetry", "retryJitterPeriod", c.Controllers.ShootRetry.RetryJitterPeriod.Duration},
	} {
		if duration.value < 0 {
			errs = append(errs, field.Invalid(field.NewPath("controllers", duration.controller, duration.field), duration.value.String(), "must not be negative"))
		}
	}
	if c.Controllers.CacheSyncTimeout.Duration <= 0 {
		errs = append(errs, field.Invalid(field.NewPath("controllers", "cacheSyncTimeout"), c.Controllers.CacheSyncTimeout.Duration.String(), "must be more than 0"))
	}
	return errs
}
