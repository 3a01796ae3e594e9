package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/yaml"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
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
	Format  string
	allowed []string
	objects *genericclioptions.PrintFlags
}

// AddOutputFlag adds the flag -o with the formats that a command has.
func AddOutputFlag(command *cobra.Command, formats ...string) *Output {
	output := &Output{allowed: formats}
	command.Flags().StringVarP(&output.Format, "output", "o", "", "Output format: "+strings.Join(formats, ", "))
	CompleteWith(command, "output", formats)
	return output
}

// AddObjectOutputFlags adds the flag -o with all formats of kubectl get, and further ones.
func AddObjectOutputFlags(command *cobra.Command, further ...string) *Output {
	output := &Output{objects: genericclioptions.NewPrintFlags("").WithTypeSetter(Scheme())}
	output.objects.OutputFormat = &output.Format
	output.objects.AddFlags(command)
	output.allowed = append(output.objects.AllowedFormats(), further...)
	if flag := command.Flags().Lookup("output"); flag != nil {
		flag.Usage = "Output format: " + strings.Join(output.allowed, ", ")
	}
	CompleteWith(command, "output", output.allowed)
	return output
}

// Check refuses formats that the command does not have.
func (o *Output) Check() error {
	format, _, _ := strings.Cut(o.Format, "=")
	if o.Format == "" || slices.Contains(o.allowed, format) {
		return nil
	}
	return fmt.Errorf("there is no output format %q: use one of %s", o.Format, strings.Join(o.allowed, ", "))
}

// IsText tells whether the output is a text for people.
func (o *Output) IsText() bool { return o.Format == "" || o.Format == FormatWide }

// PrintObjects writes ManagedResources as kubectl get does.
func (c *Console) PrintObjects(output *Output, items []resourcesv1alpha1.ManagedResource, alone bool) error {
	printer, err := output.objects.ToPrinter()
	if err != nil {
		return err
	}
	if output.Format == FormatName || alone && len(items) == 1 {
		for i := range items {
			if err := printer.PrintObj(&items[i], c.Screen); err != nil {
				return fmt.Errorf("write ManagedResource %s/%s: %w", items[i].Namespace, items[i].Name, err)
			}
		}
		return nil
	}
	objects := make([]runtime.Object, 0, len(items))
	for i := range items {
		items[i].SetGroupVersionKind(ManagedResourceKind())
		objects = append(objects, &items[i])
	}
	list, err := listOf(objects)
	if err != nil {
		return err
	}
	return printer.PrintObj(list, c.Screen)
}

// listOf returns a list as kubectl writes it, which kubectl apply takes.
func listOf(objects []runtime.Object) (runtime.Object, error) {
	list := &resourcesv1alpha1.ManagedResourceList{}
	list.SetGroupVersionKind(resourcesv1alpha1.SchemeGroupVersion.WithKind("ManagedResourceList"))
	if err := meta.SetList(list, objects); err != nil {
		return nil, fmt.Errorf("make a list of ManagedResources: %w", err)
	}
	return list, nil
}

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
