// Package render provides the command that prints what a flow would emit, without a cluster.
package render

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/create"
	"github.com/trellis-k8s/trellis/pkg/cli/pack"
	"github.com/trellis-k8s/trellis/pkg/flow"
)

// Settings are settings of the flow's program.
type Settings struct {
	class, version string
}

// AddFlags adds the flags.
func (s *Settings) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&s.class, "flow-class", "", "Class of the resource-manager that applies what a flow emits (default: the default class)")
	flags.StringVar(&s.version, "flow-version", "dev", "Version of the flow's program")
}

type options struct {
	Settings
	output  *console.Output
	paths   []string
	objects bool
}

// NewCommand returns the command render.
func NewCommand(c *console.Console) *cobra.Command {
	o := &options{}
	command := &cobra.Command{
		Use:   "render -f PATH...",
		Short: "Show what a flow would emit, without a cluster",
		Long: `Shows what a flow would emit for the objects that declare its owners: the ManagedResources with their Secrets, in the order in
which the flow writes them, or with --objects the objects in them. It needs no cluster, and prints YAML for kubectl apply and Git.

The files contain the declarations, and optionally objects that the flow would observe in a cluster, such as extension objects with
their status. ManagedResources that cannot be computed from the files are omitted, and the reason is printed on standard error.

A declaration that was read from a cluster has a UID. With it, the flow in that cluster treats the rendered objects as its own.

Flows: ` + described(),
		Example: `  # the ManagedResources of a site
  kubectl mr render -f site.yaml

  # the objects in them
  kubectl mr render -f site.yaml --objects

  # render the output of a flow in a cluster, with objects that it observes there
  kubectl get configmap/site infrastructure/site -o yaml | kubectl mr render -f -

  # compare with a cluster
  kubectl mr diff --render -f site.yaml`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			return o.run(c)
		},
	}
	flags := command.Flags()
	flags.StringSliceVarP(&o.paths, "filename", "f", nil, "File or folder with declarations; - for standard input. May be repeated")
	flags.BoolVar(&o.objects, "objects", false, "Show the objects instead of the ManagedResources and Secrets that contain them")
	o.AddFlags(flags)
	o.output = console.AddOutputFlag(command, console.FormatYAML, console.FormatJSON, console.FormatName)
	return command
}

// described lists the flows and their declarations.
func described() string {
	var texts []string
	for _, f := range flows() {
		texts = append(texts, fmt.Sprintf("%s (%s)", f.Flow, f.Declares))
	}
	return strings.Join(texts, ", ") + "."
}

func (o *options) run(c *console.Console) error {
	all, err := Read(c, o.paths, o.Settings, nothingEmitted)
	if err != nil {
		return err
	}
	var objects []runtime.Object
	for _, rendered := range all.Bundles {
		if o.objects {
			contents, err := rendered.Contents()
			if err != nil {
				return err
			}
			for _, content := range contents {
				objects = append(objects, content)
			}
			continue
		}
		for _, secret := range rendered.Secrets {
			objects = append(objects, secret)
		}
		objects = append(objects, rendered.ManagedResource)
	}
	return create.WriteObjects(c, o.output.Format, objects)
}

// Result contains the planned changes of flows.
type Result struct {
	Bundles []flow.Rendered
	// Tombstones are the bundles that would be deleted.
	Tombstones []flow.Tombstone
}

// Emitted returns the bundles that a flow has emitted for the owner that an object declares.
type Emitted func(flow string, declaration *unstructured.Unstructured) ([]flow.Key, error)

// nothingEmitted is used without a cluster.
func nothingEmitted(string, *unstructured.Unstructured) ([]flow.Key, error) { return nil, nil }

// Read returns the planned changes of flows for the declarations in files. It warns on standard error about held
// bundles.
func Read(c *console.Console, paths []string, settings Settings, emitted Emitted) (*Result, error) {
	if len(paths) == 0 {
		return nil, errors.New("specify the declarations with -f")
	}
	documents, err := pack.ReadPaths(c.In, paths)
	if err != nil {
		return nil, err
	}
	namespace, err := c.Namespace()
	if err != nil {
		return nil, err
	}
	objects := make([]*unstructured.Unstructured, 0, len(documents))
	for _, document := range documents {
		objects = append(objects, &unstructured.Unstructured{Object: document.Object})
	}
	all, declared := &Result{}, false
	for _, object := range objects {
		for _, renderer := range flows() {
			if !renderer.IsDeclaration(object) {
				continue
			}
			declared = true
			if object.GetNamespace() == "" && !renderer.ClusterScoped {
				object.SetNamespace(namespace)
			}
			inputs := flow.RenderInputs{
				Declaration: object, Others: objects, Class: settings.class, Version: settings.version, Now: time.Now(),
			}
			if inputs.Emitted, err = emitted(renderer.Flow, object); err != nil {
				return nil, err
			}
			if err := all.add(c, renderer, inputs); err != nil {
				return nil, err
			}
		}
	}
	if !declared {
		return nil, fmt.Errorf("no object in %s declares an owner of a flow. Flows: %s", strings.Join(paths, ", "), described())
	}
	return all, nil
}

// add adds the planned changes of a flow for a declaration.
func (r *Result) add(c *console.Console, renderer flow.Renderer, inputs flow.RenderInputs) error {
	declaration := inputs.Declaration
	what := declaration.GetKind() + " " + declaration.GetName()
	if declaration.GetNamespace() != "" {
		what = fmt.Sprintf("%s %s/%s", declaration.GetKind(), declaration.GetNamespace(), declaration.GetName())
	}
	owner, plan, err := renderer.Plan(inputs)
	if err != nil {
		return fmt.Errorf("plan %s: %w", what, err)
	}
	rendered, held, err := flow.RenderPlan(owner, plan, flow.Rules{Scheme: renderer.Scheme, Version: inputs.Version})
	if err != nil {
		return fmt.Errorf("render %s: %w", what, err)
	}
	for _, key := range slices.SortedFunc(maps.Keys(held), flow.Key.Compare) {
		c.Warn("%s is omitted: %s.", key, held[key])
	}
	r.Bundles = append(r.Bundles, rendered...)
	r.Tombstones = append(r.Tombstones, plan.Deletions()...)
	return nil
}
