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

// Output is the output format of results.
type Output struct {
	// Format is one of the allowed formats; empty for text.
	Format string
	// Allowed are the formats of the command.
	Allowed []string
}

// AddOutputFlag adds the flag -o. The command fails with a format that is not one of these.
func AddOutputFlag(command *cobra.Command, formats ...string) *Output {
	output := &Output{Allowed: formats}
	command.Flags().StringVarP(&output.Format, "output", "o", "", "Output format: "+strings.Join(formats, ", "))
	CompleteWith(command, "output", formats)
	output.CheckBefore(command)
	return output
}

// CheckBefore makes a command fail before it runs if the format is not allowed.
func (o *Output) CheckBefore(command *cobra.Command) {
	command.PreRunE = func(*cobra.Command, []string) error { return o.check() }
}

func (o *Output) check() error {
	format, _, _ := strings.Cut(o.Format, "=")
	if o.Format == "" || slices.Contains(o.Allowed, format) {
		return nil
	}
	return fmt.Errorf("invalid --output %q: must be one of %s", o.Format, strings.Join(o.Allowed, ", "))
}

// IsText reports whether the output is text.
func (o *Output) IsText() bool { return o.Format == "" || o.Format == FormatWide }

// PrintValue prints any value as JSON or YAML.
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
