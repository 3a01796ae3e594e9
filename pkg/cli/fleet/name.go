// Package fleet provides the Shoots and Seeds of a garden to commands of kubectl mr: their states, and their
// ManagedResources.
package fleet

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-k8s/trellis/pkg/cli/console"
)

// The kinds of owners.
const (
	Shoot = "Shoot"
	Seed  = "Seed"
)

// Name is the name of a Shoot, or of a Seed, which has no namespace.
type Name struct {
	Kind string
	types.NamespacedName
}

// String returns the name for messages, such as "Shoot garden-dev/one".
func (n Name) String() string {
	if n.Namespace == "" {
		return n.Kind + " " + n.Name
	}
	return n.Kind + " " + n.NamespacedName.String()
}

// Argument returns the name in the format that Parse reads.
func (n Name) Argument() string {
	return strings.ToLower(n.Kind) + "/" + strings.TrimPrefix(n.NamespacedName.String(), "/")
}

// Parse parses shoot/NAMESPACE/NAME or seed/NAME. It returns false for the name of a ManagedResource.
func Parse(text string) (name Name, is bool, err error) {
	kind, rest, found := strings.Cut(text, "/")
	kind, _, _ = strings.Cut(strings.ToLower(kind), ".") // kubectl get -o name prints the group, too
	parts := strings.Split(rest, "/")
	switch {
	case !found:
	case kind == "shoot" || kind == "shoots":
		if len(parts) != 2 || parts[0] == "" || parts[1] == "" {
			return name, true, fmt.Errorf("%q does not name a Shoot: use shoot/NAMESPACE/NAME. "+
				"For a ManagedResource in a namespace called %s, use -n", text, kind)
		}
		return Name{Shoot, types.NamespacedName{Namespace: parts[0], Name: parts[1]}}, true, nil
	case kind == "seed" || kind == "seeds":
		if len(parts) != 1 || rest == "" {
			return name, true, fmt.Errorf("%q does not name a Seed: use seed/NAME. "+
				"For a ManagedResource in a namespace called %s, use -n", text, kind)
		}
		return Name{Seed, types.NamespacedName{Name: rest}}, true, nil
	}
	return name, false, nil
}

// Of returns the Shoot or Seed that the arguments of a command name. It returns nil if they name ManagedResources.
func Of(args []string, choice console.Choice) (*Name, error) {
	for _, arg := range args {
		name, is, err := Parse(arg)
		switch {
		case err != nil:
			return nil, err
		case !is:
		case len(args) > 1:
			return nil, fmt.Errorf("%s must be the only argument: its ManagedResources are shown together", arg)
		case !choice.IsEmpty():
			return nil, fmt.Errorf("%s cannot be combined with --all-namespaces, --selector or --class", arg)
		default:
			return &name, nil
		}
	}
	return nil, nil
}

// Dispatch calls ofOwner if the arguments of a command name a Shoot or Seed. Otherwise it calls the other function.
func Dispatch(ctx context.Context, c *console.Console, args []string, choice console.Choice,
	ofOwner func(context.Context, *console.Console, Name) error, otherwise func(context.Context, *console.Console, []string) error,
) error {
	name, err := Of(args, choice)
	switch {
	case err != nil:
		return err
	case name != nil:
		return ofOwner(ctx, c, *name)
	}
	return otherwise(ctx, c, args)
}
