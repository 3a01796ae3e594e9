// Package why is the command that explains why a ManagedResource is not ready: it names the objects, their problems and their Events.
package why

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/fleet"
	"github.com/trellis-k8s/trellis/pkg/cli/relations"
	"github.com/trellis-k8s/trellis/pkg/cli/screen"
	"github.com/trellis-k8s/trellis/pkg/cli/snapshot"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
)

// mostObjects limits the number of reported objects of a ManagedResource.
const mostObjects = 10

type options struct {
	console.Choice
	output *console.Output
}

// NewCommand returns the command.
func NewCommand(c *console.Console) *cobra.Command {
	o := &options{}
	command := &cobra.Command{
		Use:   "why [NAME... | shoot/NAMESPACE/NAME | seed/NAME]",
		Short: "Explain why ManagedResources are not ready, and since when",
		Long: `Explains why ManagedResources are not ready: which objects are missing, unhealthy or stuck and since when, their conditions,
the objects that they own, their latest Events, who changed their fields, and the conditions of the ManagedResource. If it waits for
another ManagedResource, to be applied or to be deleted, that one is explained, too.

It also names what the ManagedResource depends on and what each dependency must have reached, what is deleted before it, which fields
are sent only with changes, and when finalizers are removed.

Without a name, it explains all ManagedResources that are neither ready nor suspended.

For a Shoot or a Seed of a garden, it explains what that waits for or fails with: its last operation, errors and conditions, and the
ManagedResources behind it that are not ready, those first that the errors name. The garden is the cluster of --garden-kubeconfig or
--garden-context; by default, the cluster with the ManagedResources.`,
		Example: `  # explain what is wrong in this namespace
  kubectl mr why -n garden

  # explain what is wrong in all namespaces
  kubectl mr why -A

  # explain the state of one ManagedResource, which may be suspended, be deleted, or wait for others
  kubectl mr why webshop-app -n garden

  # explain why a Shoot does not come up
  kubectl mr why shoot/garden-dev/one --garden-kubeconfig garden.kubeconfig`,
		ValidArgsFunction: fleet.Complete(c, c.CompleteNames(0)),
		RunE: func(command *cobra.Command, names []string) error {
			return o.dispatch(command.Context(), c, names)
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
	var chosen []resourcesv1alpha1.ManagedResource
	for i := range items {
		if len(names) > 0 || !state.Of(&items[i]).Word.IsWell() {
			chosen = append(chosen, items[i])
		}
	}
	if len(chosen) == 0 && o.output.Format == "" {
		if len(items) == 0 {
			c.Warn("No ManagedResources found.")
			return nil
		}
		c.Warn("All ManagedResources are ready or suspended (%d).", len(items))
		return nil
	}
	_, findings, err := find(ctx, c, chosen, false)
	if err != nil {
		return err
	}
	if o.output.Format != "" {
		return c.PrintValue(o.output.Format, findings)
	}
	for i := range findings {
		if err := findings[i].printTo(c.Screen, c.Clock.Now(), i > 0); err != nil {
			return err
		}
	}
	return nil
}

// Explanation explains the state of a ManagedResource at a point in time.
type Explanation struct {
	// Objects are the objects of its inventory, with the owned objects that were read.
	Objects  []*snapshot.Object
	findings []finding
}

// Explain explains the state of a ManagedResource, and of those that it waits for. Owned objects are read for all of its objects if
// below is set, or else only for those with problems, which are all that Print needs.
func Explain(ctx context.Context, c *console.Console, mr *resourcesv1alpha1.ManagedResource, below bool) (*Explanation, error) {
	objects, findings, err := find(ctx, c, []resourcesv1alpha1.ManagedResource{*mr}, below)
	if err != nil {
		return nil, err
	}
	return &Explanation{Objects: objects[0], findings: findings}, nil
}

// find reads the objects of ManagedResources, and of those that they wait for, and finds what is wrong with them.
func find(ctx context.Context, c *console.Console, chosen []resourcesv1alpha1.ManagedResource, below bool) ([][]*snapshot.Object, []finding, error) {
	chosen, states, err := follow(ctx, c, chosen)
	if err != nil {
		return nil, nil, err
	}
	objects, err := snapshot.Inventories(ctx, c, chosen, below, false)
	if err != nil {
		return nil, nil, err
	}
	findings, err := investigate(ctx, c, chosen, states, objects, below)
	return objects, findings, err
}

// Print prints the explanation for people.
func (e *Explanation) Print(to screen.Screen, now time.Time) error {
	for i := range e.findings {
		if err := e.findings[i].printTo(to, now, i > 0); err != nil {
			return err
		}
	}
	return nil
}

// finding is the result for one ManagedResource.
type finding struct {
	Name      string     `json:"name"`
	Namespace string     `json:"namespace"`
	Class     string     `json:"class"`
	State     state.Word `json:"state"`
	Since     *time.Time `json:"since,omitempty"`
	// Hints describe further possible reasons, and what to do.
	Hints []string `json:"hints,omitempty"`
	relations.Relations
	// Objects are those with problems, the most severe first; More is the number of omitted ones.
	Objects []trouble `json:"objects,omitempty"`
	More    int       `json:"more,omitempty"`
	// Conditions and Events are those of the ManagedResource.
	Conditions []condition      `json:"conditions,omitempty"`
	Events     []snapshot.Event `json:"events,omitempty"`
	// states are those of ManagedResources that were read, by name.
	states map[string]state.Word
}

// trouble is the result for one object.
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

// below is an unhealthy object that an object with problems owns.
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
