// Package config reads the configuration file of a controller-manager.
package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/pkg/apis/controllermanager/v1alpha1"
)

// maxFileBytes is far above the size of a complete configuration and keeps a mistaken path from filling the memory.
const maxFileBytes = 1 << 20

// Load reads, defaults and validates the configuration file at path. The error lists everything that is wrong, with the paths of the fields.
func Load(path string) (*v1alpha1.ControllerManagerConfiguration, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the configuration file: %w", err)
	}
	defer func() { _ = file.Close() }()
	// One byte more than allowed is enough for Parse to see that the file is too large.
	data, err := io.ReadAll(io.LimitReader(file, maxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read the configuration file: %w", err)
	}
	c, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("configuration file %s: %w", path, err)
	}
	return c, nil
}

// Parse decodes, defaults and validates a configuration in YAML or JSON. Decoding is strict: unknown fields and keys that are set twice are
// errors.
func Parse(data []byte) (*v1alpha1.ControllerManagerConfiguration, error) {
	if len(data) > maxFileBytes {
		return nil, fmt.Errorf("too large: at most %d bytes are read", maxFileBytes)
	}
	encoded, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, fmt.Errorf("not YAML: %w", err)
	}
	c := &v1alpha1.ControllerManagerConfiguration{}
	mistakes, err := json.UnmarshalStrict(encoded, c)
	if err != nil {
		return nil, fmt.Errorf("not a %s: %w", v1alpha1.Kind, err)
	}
	v1alpha1.SetDefaults(c)
	for _, err := range validate(c) {
		mistakes = append(mistakes, err)
	}
	if err := errors.Join(mistakes...); err != nil {
		return nil, err
	}
	return c, nil
}

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
	} {
		if *controller.ConcurrentSyncs < 1 {
			errs = append(errs, field.Invalid(field.NewPath("controllers", name, "concurrentSyncs"), *controller.ConcurrentSyncs, "must be at least 1"))
		}
	}
	if c.Controllers.CacheSyncTimeout.Duration <= 0 {
		errs = append(errs, field.Invalid(field.NewPath("controllers", "cacheSyncTimeout"), c.Controllers.CacheSyncTimeout.Duration.String(), "must be more than 0"))
	}
	return errs
}
