// Package config reads the configuration file of an operator.
package config

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/operatorconfig/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/configfile"
)

// FeatureGates returns the names of the feature gates that the operator accepts, which are those of Gardener's operator.
func FeatureGates() []string {
	return []string{
		"BackupEntryForGarden", "DefaultSeccompProfile", "DisableNginxIngressInGarden", "IstioTLSTermination", "OpenTelemetryCollector",
		"PrometheusHealthChecks", "RemoveVali", "VictoriaLogsBackend",
	}
}

// format is how the file is read.
var format = configfile.Format[v1alpha1.OperatorConfiguration]{Kind: v1alpha1.Kind, SetDefaults: v1alpha1.SetDefaults, Validate: validate}

// Load reads, defaults and validates the configuration file at path. The error lists everything that is wrong, with the paths of the fields.
func Load(path string) (*v1alpha1.OperatorConfiguration, error) { return format.Load(path) }

// Parse decodes, defaults and validates a configuration in YAML or JSON. Decoding is strict: unknown fields and keys that are set twice are
// errors.
func Parse(data []byte) (*v1alpha1.OperatorConfiguration, error) { return format.Parse(data) }

// validate checks a configuration with its defaults.
func validate(c *v1alpha1.OperatorConfiguration) field.ErrorList {
	var errs field.ErrorList
	oneOf := func(path *field.Path, value string, allowed ...string) {
		if !slices.Contains(allowed, value) {
			errs = append(errs, field.NotSupported(path, value, allowed))
		}
	}
	oneOf(field.NewPath("apiVersion"), c.APIVersion, v1alpha1.APIVersion)
	oneOf(field.NewPath("kind"), c.Kind, v1alpha1.Kind)
	oneOf(field.NewPath("logLevel"), c.LogLevel, "info", "debug", "error")
	oneOf(field.NewPath("logFormat"), c.LogFormat, "json", "text")
	for _, name := range slices.Sorted(maps.Keys(c.FeatureGates)) {
		oneOf(field.NewPath("featureGates").Key(name), name, FeatureGates()...)
	}
	if c.VirtualClientConnection.Kubeconfig != "" {
		errs = append(errs, field.Forbidden(field.NewPath("virtualClientConnection", "kubeconfig"), "the operator makes the kubeconfig itself"))
	}
	return append(errs, validateControllers(&c.Controllers, field.NewPath("controllers"))...)
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
	for _, period := range []struct {
		name  string
		value *metav1.Duration
	}{
		{"garden", c.Garden.SyncPeriod}, {"gardenCare", c.GardenCare.SyncPeriod}, {"extensionCare", c.ExtensionCare.SyncPeriod},
	} {
		if period.value.Duration <= 0 {
			errs = append(errs, field.Invalid(path.Child(period.name, "syncPeriod"), period.value.Duration.String(), "must be more than 0"))
		}
	}
	for i, selector := range c.NetworkPolicy.AdditionalNamespaceSelectors {
		errs = append(errs, metav1validation.ValidateLabelSelector(&selector, metav1validation.LabelSelectorValidationOptions{},
			path.Child("networkPolicy", "additionalNamespaceSelectors").Index(i))...)
	}
	errs = append(errs, validateThresholds(c.GardenCare.ConditionThresholds, path.Child("gardenCare", "conditionThresholds"),
		string(operatorv1alpha1.RuntimeComponentsHealthy), string(operatorv1alpha1.VirtualComponentsHealthy),
		string(operatorv1alpha1.VirtualGardenAPIServerAvailable), string(operatorv1alpha1.ObservabilityComponentsHealthy))...)
	return append(errs, validateThresholds(c.ExtensionCare.ConditionThresholds, path.Child("extensionCare", "conditionThresholds"),
		string(operatorv1alpha1.ExtensionControllerInstallationsHealthy), string(operatorv1alpha1.ExtensionRuntimeHealthy),
		string(operatorv1alpha1.ExtensionAdmissionHealthy))...)
}

// validateThresholds checks how long conditions are Progressing.
func validateThresholds(thresholds []gardenletv1alpha1.ConditionThreshold, path *field.Path, types ...string) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, threshold := range thresholds {
		at := path.Index(i)
		switch {
		case !slices.Contains(types, threshold.Type):
			errs = append(errs, field.NotSupported(at.Child("type"), threshold.Type, types))
		case seen[threshold.Type]:
			errs = append(errs, field.Duplicate(at.Child("type"), threshold.Type))
		}
		seen[threshold.Type] = true
		if threshold.Duration.Duration < 0 {
			errs = append(errs, field.Invalid(at.Child("duration"), threshold.Duration.Duration.String(), "must not be negative"))
		}
	}
	return errs
}
