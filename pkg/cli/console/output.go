package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// Output formats.
const (
	FormatJSON = "json"
	FormatYAML = "yaml"
	FormatWide = "wide"
	FormatName = "name"
)

// Output is how results are written.
type Output struct {
	// Format is one of those that the command has; empty for a text for people.
	Format string
	// Allowed are those that the command has.
	Allowed []string
}

// AddOutputFlag adds the flag -o with the formats that a command has.
func AddOutputFlag(command *cobra.Command, formats ...string) *Output {
	output := &Output{Allowed: formats}
	command.Flags().StringVarP(&output.Format, "output", "o", "", "Output format: "+strings.Join(formats, ", "))
	CompleteWith(command, "output", formats)
	return output
}

// Check refuses formats that the command does not have.
func (o *Output) Check() error {
	format, _, _ := strings.Cut(o.Format, "=")
	if o.Format == "" || slices.Contains(o.Allowed, format) {
		return nil
	}
	return fmt.Errorf("there is no output format %q: use one of %s", o.Format, strings.Join(o.Allowed, ", "))
}

// IsText tells whether the output is a text for people.
func (o *Output) IsText() bool { return o.Format == "" || o.Format == FormatWide }

// PrintValue writes any value as JSON or YAML.
func (c *Console) PrintValue(format string, value any) error {
	var encoded bytes.Buffer
	encoder := json.NewEncoder(&encoded)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "    ")
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("encode the result: %w", err)
	}
	text := encoded.Bytes()
	if format == FormatYAML {
		var err error
		if text, err = yaml.JSONToYAML(text); err != nil {
			return fmt.Errorf("encode the result: %w", err)
		}
	}
	_, err := c.Screen.Write(text)
	return err
}
