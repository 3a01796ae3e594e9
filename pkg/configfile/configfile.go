// Package configfile reads the configuration files of programs strictly: unknown fields and duplicate keys are errors.
package configfile

import (
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// MaxBytes is the maximum size of a configuration file. It is far above the size of a complete configuration and
// protects against a wrong path to a huge file.
const MaxBytes = 1 << 20

// Format is a kind of configuration.
type Format[T any] struct {
	// Kind is the name of the kind, for errors.
	Kind string
	// SetDefaults sets the defaults of a configuration.
	SetDefaults func(*T)
	// Validate checks a defaulted configuration.
	Validate func(*T) field.ErrorList
}

// Load reads, defaults and validates the configuration file at path. The error lists all problems with the paths of the
// fields.
func (f Format[T]) Load(path string) (*T, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the configuration file: %w", err)
	}
	defer func() { _ = file.Close() }()
	// With one extra byte, Parse can detect that the file is too large.
	data, err := io.ReadAll(io.LimitReader(file, MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read the configuration file: %w", err)
	}
	c, err := f.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("configuration file %s: %w", path, err)
	}
	return c, nil
}

// Parse decodes, defaults and validates a configuration in YAML or JSON of at most 1 MiB. It returns the same errors as
// [Format.Load].
func (f Format[T]) Parse(data []byte) (*T, error) {
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("too large: at most %d bytes are read", MaxBytes)
	}
	encoded, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, fmt.Errorf("not YAML: %w", err)
	}
	c := new(T)
	mistakes, err := json.UnmarshalStrict(encoded, c)
	if err != nil {
		return nil, fmt.Errorf("not a %s: %w", f.Kind, err)
	}
	f.SetDefaults(c)
	for _, err := range f.Validate(c) {
		mistakes = append(mistakes, err)
	}
	if err := errors.Join(mistakes...); err != nil {
		return nil, err
	}
	return c, nil
}
