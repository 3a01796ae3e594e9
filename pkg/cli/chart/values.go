package chart

import (
	"bytes"
	"fmt"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/strvals"
)

// Values are merged from several sources. Later sources override earlier ones.
type Values map[string]any

// AddFile merges the values of a YAML file. They override the existing values.
func (v *Values) AddFile(file File) error {
	read, err := loader.LoadValues(bytes.NewReader([]byte(file.Content)))
	if err != nil {
		return fmt.Errorf("read the values in %s: %w", file.Name, err)
	}
	*v = loader.MergeMaps(*v, read)
	return nil
}

// Assign sets values in the format of Helm's --set: image.tag=v2, or several separated by commas.
func (v Values) Assign(assignment string) error {
	if err := strvals.ParseInto(assignment, v); err != nil {
		return fmt.Errorf("--set-value %s: %w", assignment, err)
	}
	return nil
}

// AssignText is like Assign, but keeps values that look like numbers or booleans as strings.
func (v Values) AssignText(assignment string) error {
	if err := strvals.ParseIntoString(assignment, v); err != nil {
		return fmt.Errorf("--set-string-value %s: %w", assignment, err)
	}
	return nil
}
