package kubectl

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
)

// Output is the output format of objects, with the formats of kubectl get.
type Output struct {
	console.Output
	flags *genericclioptions.PrintFlags
}

// AddObjectOutputFlags adds the flag -o with all formats of kubectl get, and additional ones.
func AddObjectOutputFlags(command *cobra.Command, further ...string) *Output {
	output := &Output{flags: genericclioptions.NewPrintFlags("").WithTypeSetter(console.Scheme())}
	output.flags.OutputFormat = &output.Format
	output.flags.AddFlags(command)
	output.Allowed = append(output.flags.AllowedFormats(), further...)
	if flag := command.Flags().Lookup("output"); flag != nil {
		flag.Usage = "Output format: " + strings.Join(output.Allowed, ", ")
	}
	console.CompleteWith(command, "output", output.Allowed)
	output.CheckBefore(command)
	return output
}

// PrintObjects prints ManagedResources as kubectl get does. A single object is not printed as a list if alone is set.
func (o *Output) PrintObjects(c *console.Console, items []resourcesv1alpha1.ManagedResource, alone bool) error {
	printer, err := o.flags.ToPrinter()
	if err != nil {
		return err
	}
	if o.Format == console.FormatName || alone && len(items) == 1 {
		for i := range items {
			if err := printer.PrintObj(&items[i], c.Screen); err != nil {
				return fmt.Errorf("write ManagedResource %s/%s: %w", items[i].Namespace, items[i].Name, err)
			}
		}
		return nil
	}
	objects := make([]runtime.Object, 0, len(items))
	for i := range items {
		items[i].SetGroupVersionKind(console.ManagedResourceKind())
		objects = append(objects, &items[i])
	}
	list, err := listOf(objects)
	if err != nil {
		return err
	}
	return printer.PrintObj(list, c.Screen)
}

// listOf returns a list in the format of kubectl get, which kubectl apply accepts.
func listOf(objects []runtime.Object) (runtime.Object, error) {
	list := &resourcesv1alpha1.ManagedResourceList{}
	list.SetGroupVersionKind(resourcesv1alpha1.SchemeGroupVersion.WithKind("ManagedResourceList"))
	if err := meta.SetList(list, objects); err != nil {
		return nil, fmt.Errorf("create a list of ManagedResources: %w", err)
	}
	return list, nil
}
