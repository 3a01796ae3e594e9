package v1alpha1

import (
	stdjson "encoding/json"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/json"
)

// maxFileBytes is far above the size of a complete configuration. It protects against a wrong path to a huge file.
const maxFileBytes = 1 << 20

const (
	managedResourceKey   = "managedResource"
	managedResourceAlias = "managedResources"
)

// Load reads, defaults and validates the configuration file at path. The error lists all problems.
func Load(path string) (*ResourceManagerConfiguration, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the configuration file: %w", err)
	}
	defer func() { _ = file.Close() }()
	// With one extra byte, Parse can detect that the file is too large.
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

// Parse decodes, defaults and validates a configuration in YAML or JSON. Decoding is strict: unknown fields and
// duplicate keys are errors. The error lists all problems, one per line. Each of them is a *field.Error for errors.As.
func Parse(data []byte) (*ResourceManagerConfiguration, error) {
	if len(data) > maxFileBytes {
		return nil, fmt.Errorf("too large: at most %d bytes are read", maxFileBytes)
	}
	tree, errs, err := readTree(data)
	if err != nil {
		return nil, err
	}
	if mismatch := otherKind(tree); len(mismatch) > 0 {
		// Do not report the fields of another kind as unknown.
		return nil, newInvalidError(mismatch)
	}
	aliased, aliasErrs := resolveAlias(tree)
	errs = append(errs, aliasErrs...)
	c, decodeErrs, err := decode(tree)
	if err != nil {
		return nil, err
	}
	if errs = append(errs, decodeErrs...); len(errs) == 0 {
		return c, nil
	}
	if aliased {
		restoreAlias(errs)
	}
	return nil, newInvalidError(errs)
}

// decode decodes the usable part of the tree, sets defaults, and returns all problems.
func decode(tree map[string]any) (*ResourceManagerConfiguration, field.ErrorList, error) {
	decoder := &strictDecoder{}
	decoder.prune(tree, reflect.TypeFor[ResourceManagerConfiguration](), nil)
	data, err := stdjson.Marshal(tree)
	if err != nil {
		return nil, nil, notYAML(err)
	}
	c := &ResourceManagerConfiguration{}
	if err := json.UnmarshalCaseSensitivePreserveInts(data, c); err != nil {
		return nil, nil, fmt.Errorf("not a configuration: %w", err)
	}
	SetDefaults(c)
	errs := slices.Concat(decoder.unknown, decoder.unusable)
	for _, err := range append(missingKind(c), Validate(c)...) {
		if !decoder.covers(err.Field) {
			errs = append(errs, err)
		}
	}
	return c, errs, nil
}

// otherKind reports an apiVersion or kind with a different value.
func otherKind(tree map[string]any) field.ErrorList {
	var errs field.ErrorList
	if value, ok := tree["apiVersion"].(string); ok && value != SchemeGroupVersion.String() {
		errs = append(errs, field.NotSupported(field.NewPath("apiVersion"), value, []string{SchemeGroupVersion.String()}))
	}
	if value, ok := tree["kind"].(string); ok && value != Kind {
		errs = append(errs, field.NotSupported(field.NewPath("kind"), value, []string{Kind}))
	}
	return errs
}

func missingKind(c *ResourceManagerConfiguration) field.ErrorList {
	var errs field.ErrorList
	if c.APIVersion == "" {
		errs = append(errs, field.Required(field.NewPath("apiVersion"), "must be "+SchemeGroupVersion.String()))
	}
	if c.Kind == "" {
		errs = append(errs, field.Required(field.NewPath("kind"), "must be "+Kind))
	}
	return errs
}

// resolveAlias renames controllers.managedResources, the spelling in the documents, to its real name, and reports
// whether it was used. gardener-resource-manager ignores that spelling, but its author meant it to have an effect.
func resolveAlias(tree map[string]any) (bool, field.ErrorList) {
	controllers, _ := tree["controllers"].(map[string]any)
	value, aliased := controllers[managedResourceAlias]
	if !aliased {
		return false, nil
	}
	delete(controllers, managedResourceAlias)
	if _, both := controllers[managedResourceKey]; both {
		return false, field.ErrorList{field.Forbidden(field.NewPath("controllers", managedResourceAlias),
			"set together with controllers.managedResource, although it is only another spelling of that: "+
				"merge them into controllers.managedResource")}
	}
	controllers[managedResourceKey] = value
	return true, nil
}

// restoreAlias changes errors to name the field as it is spelled in the file.
func restoreAlias(errs field.ErrorList) {
	spelled, written := "controllers."+managedResourceKey, "controllers."+managedResourceAlias
	for _, err := range errs {
		if rest, ok := strings.CutPrefix(err.Field, spelled); ok && (rest == "" || rest[0] == '.') {
			err.Field = written + rest
		}
	}
}
