// Package why is the command that tells why a ManagedResource is not ready: from "something is red" to the object, its reason and
// its Events.
package why

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/screen"
	"github.com/trellis-k8s/trellis/pkg/cli/snapshot"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
)

// mostObjects is how many objects of one ManagedResource are told of.
const mostObjects = 10

type options struct {
	console.Choice
	output *console.Output
}

// NewCommand returns the command.
func NewCommand(c *console.Console) *cobra.Command {
	o := &options{}
	command := &cobra.Command{
		Use:   "why [NAME...]",
		Short: "Tell why ManagedResources are not ready, and since when",
		Long: `Tells why ManagedResources are not ready: which objects are missing, unhealthy or stuck and since when, their conditions,
what is below them, their latest Events, who changed their fields, and what the ManagedResource itself says. Of one that waits
for another one, that is told of the other one, too.

Without a name, all that are neither ready nor suspended are told of.`,
		Example: `  # what is wrong in this namespace?
  kubectl mr why -n garden

  # everywhere
  kubectl mr why -A

  # a certain one, which may be suspended
  kubectl mr why webshop-app -n garden`,
		ValidArgsFunction: c.CompleteNames(0),
		RunE: func(command *cobra.Command, names []string) error {
			if err := o.output.Check(); err != nil {
				return err
			}
			return o.run(command.Context(), c, names)
		},
	}
	o.AddFlags(command.Flags())
	o.output = console.AddOutputFlag(command, console.FormatJSON, console.FormatYAML)
	return command
}

func (o *options) run(ctx context.Context, c *console.Console, names []string) error {
	items, err := c.Choose(ctx, names, o.Choice)
	if err != nil {
		return err
	}
	var told []resourcesv1alpha1.ManagedResource
	for i := range items {
		if len(names) > 0 || !state.Of(&items[i]).Word.IsWell() {
			told = append(told, items[i])
		}
	}
	if len(told) == 0 && o.output.Format == "" {
		if len(items) == 0 {
			c.Warn("There are no such ManagedResources.")
			return nil
		}
		c.Warn("All is well: every ManagedResource is ready or suspended (%d).", len(items))
		return nil
	}
	_, findings, err := find(ctx, c, told, false)
	if err != nil {
		return err
	}
	if o.output.Format != "" {
		return c.PrintValue(o.output.Format, findings)
	}
	for i := range findings {
		if err := findings[i].tell(c.Screen, c.Clock.Now(), i > 0); err != nil {
			return err
		}
	}
	return nil
}

// Explanation is what is found of a ManagedResource at a moment.
type Explanation struct {
	// Objects are those of its inventory, with what was read of what is below them.
	Objects  []*snapshot.Object
	findings []finding
}

// Explain finds out all that there is to tell of a ManagedResource, and of those that it waits for. What is below its objects is read
// of all of them, or of those with trouble alone, which is all that Print tells of.
func Explain(ctx context.Context, c *console.Console, mr *resourcesv1alpha1.ManagedResource, below bool) (*Explanation, error) {
	objects, findings, err := find(ctx, c, []resourcesv1alpha1.ManagedResource{*mr}, below)
	if err != nil {
		return nil, err
	}
	return &Explanation{Objects: objects[0], findings: findings}, nil
}

// find reads the objects of ManagedResources, and of those that they wait for, and finds out what is wrong with them.
func find(ctx context.Context, c *console.Console, told []resourcesv1alpha1.ManagedResource, below bool) ([][]*snapshot.Object, []finding, error) {
	told, err := withDependencies(ctx, c, told)
	if err != nil {
		return nil, nil, err
	}
	objects, err := snapshot.Inventories(ctx, c, told, below, false)
	if err != nil {
		return nil, nil, err
	}
	findings, err := investigate(ctx, c, told, objects, below)
	return objects, findings, err
}

// Print writes why it is as it is.
func (e *Explanation) Print(to screen.Screen, now time.Time) error {
	for i := range e.findings {
		if err := e.findings[i].tell(to, now, i > 0); err != nil {
			return err
		}
	}
	return nil
}

// finding is what is found of one ManagedResource.
type finding struct {
	Name      string     `json:"name"`
	Namespace string     `json:"namespace"`
	Class     string     `json:"class"`
	State     state.Word `json:"state"`
	Since     *time.Time `json:"since,omitempty"`
	// Hints say what else may be the reason, and what to do.
	Hints []string `json:"hints,omitempty"`
	// Objects are those with trouble, the gravest first; More is how many are left out.
	Objects []trouble `json:"objects,omitempty"`
	More    int       `json:"more,omitempty"`
	// Conditions and Events are those of the ManagedResource.
	Conditions []condition      `json:"conditions,omitempty"`
	Events     []snapshot.Event `json:"events,omitempty"`
}

// trouble is what is found of an object.
type trouble struct {
	APIVersion string           `json:"apiVersion"`
	Kind       string           `json:"kind"`
	Namespace  string           `json:"namespace,omitempty"`
	Name       string           `json:"name"`
	Health     snapshot.Health  `json:"health"`
	Why        string           `json:"why,omitempty"`
	Since      *time.Time       `json:"since,omitempty"`
	Conditions []condition      `json:"conditions,omitempty"`
	Below      []below          `json:"below,omitempty"`
	Events     []snapshot.Event `json:"events,omitempty"`
	Takers     []snapshot.Taker `json:"changedBy,omitempty"`
}

// below is an object below one with trouble that is not well either.
type below struct {
	Kind   string          `json:"kind"`
	Name   string          `json:"name"`
	Health snapshot.Health `json:"health"`
	Why    string          `json:"why,omitempty"`
	Since  *time.Time      `json:"since,omitempty"`
}

// condition is one of an object, or of a ManagedResource.
type condition struct {
	Type    string     `json:"type"`
	Status  string     `json:"status"`
	Since   *time.Time `json:"since,omitempty"`
	Reason  string     `json:"reason,omitempty"`
	Message string     `json:"message,omitempty"`
}

func timeOrNil(when time.Time) *time.Time {
	if when.IsZero() {
		return nil
	}
	return &when
}
