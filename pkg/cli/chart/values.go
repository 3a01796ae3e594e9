package chart

import (
	"bytes"
	"fmt"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/strvals"
)

// Values are merged from several sources, the later ones over the earlier ones.
type Values map[string]any

// AddFile puts the values of a file (YAML) over those that are there.
func (v *Values) AddFile(file File) error {
	read, err := loader.LoadValues(bytes.NewReader([]byte(file.Content)))
	if err != nil {
		return fmt.Errorf("read the values in %s: %w", file.Name, err)
	}
	*v = loader.MergeMaps(*v, read)
	return nil
}

// Assign puts a value over those that are there, as Helm writes them: image.tag=v2, or several divided by commas.
func (v Values) Assign(assignment string) error {
	if err := strvals.ParseInto(assignment, v); err != nil {
		return fmt.Errorf("--set-value %s: %w", assignment, err)
	}
	return nil
}

// AssignText is Assign for values that are texts though they look like numbers or truth values.
func (v Values) AssignText(assignment string) error {
	if err := strvals.ParseIntoString(assignment, v); err != nil {
		return fmt.Errorf("--set-string-value %s: %w", assignment, err)
	}
	return nil
}
