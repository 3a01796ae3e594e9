package validation

import (
	stdjson "encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/json"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/validation"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	gardenletvalidation "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/validation"
	"github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// connection defines how a configured gardenlet gets its credentials for the garden.
type connection struct {
	bootstrap v1alpha1.Bootstrap
	// merged is true if the configuration is merged into the configuration of another gardenlet, which may provide missing
	// values.
	merged bool
}

// validateConfiguration checks the configuration of a gardenlet, which is read with its defaults.
func validateConfiguration(raw []byte, c connection, path *field.Path) field.ErrorList {
	read, seed, err := splitSeedConfig(raw)
	if err != nil {
		return field.ErrorList{field.Invalid(path, "(configuration)", fmt.Sprintf("must be a %s: %v", gardenletv1alpha1.Kind, err))}
	}
	gardenletv1alpha1.SetDefaults(read)
	errs := gardenletvalidation.Validate(read, path)
	errs = append(errs, validateConnection(read.GardenClientConnection, c, path.Child("gardenClientConnection"))...)
	return append(errs, validateSeedConfig(seed, path.Child("seedConfig"))...)
}

func validateConnection(given *gardenletv1alpha1.GardenClientConnection, c connection, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if c.bootstrap != v1alpha1.BootstrapNone {
		if given.Kubeconfig != "" {
			errs = append(errs, field.Forbidden(path.Child("kubeconfig"), fmt.Sprintf("must not be set with bootstrap %s", c.bootstrap)))
		}
		return errs
	}
	if given.Kubeconfig == "" && !c.merged {
		errs = append(errs, field.Required(path.Child("kubeconfig"), "the gardenlet gets no credentials otherwise"))
	}
	for name, set := range map[string]bool{"bootstrapKubeconfig": given.BootstrapKubeconfig != nil,
		"kubeconfigSecret": given.KubeconfigSecret != nil} {
		if set {
			errs = append(errs, field.Forbidden(path.Child(name), "must not be set without bootstrap"))
		}
	}
	return errs
}

// validateSeedConfig checks the Seed that the gardenlet registers. It has the name of the object.
func validateSeedConfig(raw *runtime.RawExtension, path *field.Path) field.ErrorList {
	template, err := seedTemplate(raw)
	if err != nil {
		return field.ErrorList{field.Invalid(path, "(seed)", err.Error())}
	}
	if template == nil {
		return nil
	}
	var errs field.ErrorList
	if template.Metadata.Name != "" {
		errs = append(errs, field.Forbidden(path.Child("metadata", "name"), "the name of the Seed is that of the object"))
	}
	return append(errs, validation.ValidateSeedTemplate(template, path)...)
}

// validateSeedConfigUpdate checks the Seed of a configuration that replaces another. A configuration that cannot be read is
// reported elsewhere.
func validateSeedConfigUpdate(raw, old []byte, path *field.Path) field.ErrorList {
	now, err := seedConfigOf(raw)
	before, oldErr := seedConfigOf(old)
	if err != nil || oldErr != nil || now == nil || before == nil {
		return nil
	}
	return validation.ValidateSeedTemplateUpdate(now, before, path.Child("seedConfig"))
}

func seedConfigOf(raw []byte) (*gardencorev1beta1.SeedTemplate, error) {
	_, seed, err := splitSeedConfig(raw)
	if err != nil {
		return nil, err
	}
	return seedTemplate(seed)
}

// splitSeedConfig splits a configuration into the Seed and the rest. The Seed is nil if the configuration has none. The
// error is about the rest.
func splitSeedConfig(raw []byte) (*gardenletv1alpha1.GardenletConfiguration, *runtime.RawExtension, error) {
	var seed struct {
		SeedConfig *runtime.RawExtension `json:"seedConfig"`
	}
	rest := map[string]stdjson.RawMessage{}
	if err := errors.Join(json.UnmarshalCaseSensitivePreserveInts(raw, &seed),
		json.UnmarshalCaseSensitivePreserveInts(raw, &rest)); err != nil {
		return nil, nil, err
	}
	delete(rest, "seedConfig")
	remaining, err := stdjson.Marshal(rest)
	if err != nil {
		return nil, nil, err
	}
	configuration := &gardenletv1alpha1.GardenletConfiguration{}
	err = json.UnmarshalCaseSensitivePreserveInts(remaining, configuration)
	return configuration, seed.SeedConfig, err
}

// seedTemplate decodes the Seed of a configuration strictly. It returns nil if there is none.
func seedTemplate(raw *runtime.RawExtension) (*gardencorev1beta1.SeedTemplate, error) {
	if raw == nil || len(raw.Raw) == 0 || string(raw.Raw) == "null" {
		return nil, nil
	}
	template := &gardencorev1beta1.SeedTemplate{}
	strict, err := json.UnmarshalStrict(raw.Raw, template)
	if err != nil {
		return nil, err
	}
	return template, errors.Join(strict...)
}
