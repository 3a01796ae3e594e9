// Package config reads the configuration file of a scheduler.
package config

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-k8s/trellis/pkg/apis/scheduler/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/configfile"
	"github.com/trellis-k8s/trellis/pkg/scheduler/decision"
)

// format is how the file is read.
var format = configfile.Format[v1alpha1.SchedulerConfiguration]{Kind: v1alpha1.Kind, SetDefaults: v1alpha1.SetDefaults, Validate: validate}

// Load reads, defaults and validates the configuration file at path. The error lists everything that is wrong, with the paths of the fields.
func Load(path string) (*v1alpha1.SchedulerConfiguration, error) { return format.Load(path) }

// Parse decodes, defaults and validates a configuration in YAML or JSON. Decoding is strict: unknown fields and keys that are set twice are
// errors.
func Parse(data []byte) (*v1alpha1.SchedulerConfiguration, error) { return format.Parse(data) }

// validate checks a configuration with its defaults.
func validate(c *v1alpha1.SchedulerConfiguration) field.ErrorList {
	var errs field.ErrorList
	oneOf := func(path *field.Path, value string, allowed ...string) {
		if !slices.Contains(allowed, value) {
			errs = append(errs, field.NotSupported(path, value, allowed))
		}
	}
	atLeastOne := func(path *field.Path, value int) {
		if value < 1 {
			errs = append(errs, field.Invalid(path, value, "must be at least 1"))
		}
	}
	oneOf(field.NewPath("apiVersion"), c.APIVersion, v1alpha1.APIVersion)
	oneOf(field.NewPath("kind"), c.Kind, v1alpha1.Kind)
	oneOf(field.NewPath("logLevel"), c.LogLevel, "info", "debug", "error")
	oneOf(field.NewPath("logFormat"), c.LogFormat, "json", "text")
	schedulers := field.NewPath("schedulers")
	oneOf(schedulers.Child("shoot", "candidateDeterminationStrategy"), c.Schedulers.Shoot.Strategy, string(decision.SameRegion), string(decision.MinimalDistance))
	atLeastOne(schedulers.Child("shoot", "concurrentSyncs"), c.Schedulers.Shoot.ConcurrentSyncs)
	atLeastOne(schedulers.Child("backupBucket", "concurrentSyncs"), c.Schedulers.BackupBucket.ConcurrentSyncs)
	return errs
}
