// Package config reads the configuration file of a gardenlet.
package config

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	corevalidation "github.com/trellis-k8s/trellis/pkg/apis/core/validation"
	"github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/gardenlet/validation"
	"github.com/trellis-k8s/trellis/pkg/configfile"
)

// FeatureGates returns the names of the feature gates that gardenlet accepts, which are those of Gardener's gardenlet.
func FeatureGates() []string {
	return []string{
		"CustomDNSServerInNodeLocalDNS", "DefaultSeccompProfile", "DisableNginxIngressInSeed", "DoNotCopyBackupCredentials",
		"IstioTLSTermination", "OpenTelemetryCollector", "PrometheusHealthChecks", "RemoveHTTPProxyLegacyPort", "RemoveVali",
		"VPNBondingModeRoundRobin", "VictoriaLogsBackend",
	}
}

// format defines how the file is decoded, defaulted and validated.
var format = configfile.Format[v1alpha1.GardenletConfiguration]{
	Kind: v1alpha1.Kind, SetDefaults: v1alpha1.SetDefaults, Validate: func(c *v1alpha1.GardenletConfiguration) field.ErrorList {
		return slices.Concat(validation.Validate(c, nil), validateProcess(c))
	},
}

// Load reads, defaults and validates the configuration file at path. The error lists all problems with the paths of the fields.
func Load(path string) (*v1alpha1.GardenletConfiguration, error) { return format.Load(path) }

// Parse decodes, defaults and validates a configuration in YAML or JSON. Decoding is strict: unknown fields and keys that are set twice are
// errors.
func Parse(data []byte) (*v1alpha1.GardenletConfiguration, error) { return format.Parse(data) }

// validateProcess validates fields that only a running process needs. Configurations in ManagedSeeds and Gardenlets are
// completed when they are deployed.
func validateProcess(c *v1alpha1.GardenletConfiguration) field.ErrorList {
	var errs field.ErrorList
	seed := field.NewPath("seedConfig")
	if c.SeedConfig == nil {
		errs = append(errs, field.Required(seed, "the Seed that this gardenlet manages"))
	} else {
		if c.SeedConfig.Metadata.Name == "" {
			errs = append(errs, field.Required(seed.Child("metadata", "name"), "the name of the Seed"))
		}
		// Validate it as a complete Seed instead of a template, like the API server of the garden does.
		spec := c.SeedConfig.Spec.DeepCopy()
		gardencorev1beta1.SetDefaultsSeedSpec(spec)
		errs = append(errs, corevalidation.ValidateSeedSpec(spec, seed.Child("spec"), false)...)
	}
	garden, at := c.GardenClientConnection, field.NewPath("gardenClientConnection")
	errs = append(errs, validateReference(garden.BootstrapKubeconfig, at.Child("bootstrapKubeconfig"))...)
	errs = append(errs, validateReference(garden.KubeconfigSecret, at.Child("kubeconfigSecret"))...)
	if garden.BootstrapKubeconfig != nil && garden.KubeconfigSecret == nil {
		errs = append(errs, field.Required(at.Child("kubeconfigSecret"),
			"the Secret for the kubeconfig that the gardenlet requests with bootstrapKubeconfig"))
	}
	if garden.Kubeconfig == "" && garden.KubeconfigSecret == nil {
		errs = append(errs, field.Required(at.Child("kubeconfigSecret"), "set it, or kubeconfig, to reach the garden"))
	}
	for name := range c.FeatureGates {
		if !slices.Contains(FeatureGates(), name) {
			errs = append(errs, field.NotSupported(field.NewPath("featureGates").Key(name), name, FeatureGates()))
		}
	}
	return errs
}

func validateReference(reference *corev1.SecretReference, path *field.Path) field.ErrorList {
	if reference == nil {
		return nil
	}
	var errs field.ErrorList
	if reference.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), "the name of the Secret"))
	}
	if reference.Namespace == "" {
		errs = append(errs, field.Required(path.Child("namespace"), "the namespace of the Secret"))
	}
	return errs
}
