// Package fleet provides Gardens and the Shoots and Seeds of a garden to commands of kubectl mr: their states, and their
// ManagedResources.
package fleet

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
)

// The kinds of owners.
const (
	Shoot  = "Shoot"
	Seed   = "Seed"
	Garden = "Garden"
)

// arguments are the beginnings of arguments by kind. A garden/NAME is a ManagedResource in the namespace garden.
var arguments = map[string]string{Shoot: "shoot/", Seed: "seed/", Garden: "gardens/"}

// Name is the name of a Shoot, or of a Seed or a Garden, which have no namespace.
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
	return arguments[n.Kind] + strings.TrimPrefix(n.NamespacedName.String(), "/")
}

// Parse parses shoot/NAMESPACE/NAME, seed/NAME or gardens/NAME. It returns false for the name of a ManagedResource.
func Parse(text string) (name Name, is bool, err error) {
	kind, rest, found := strings.Cut(text, "/")
	kind, group, _ := strings.Cut(strings.ToLower(kind), ".") // kubectl get -o name prints the group, too
	parts := strings.Split(rest, "/")
	withoutNamespace := func(of string) (Name, bool, error) {
		if len(parts) != 1 || rest == "" {
			return name, true, fmt.Errorf("%q does not name a %s: use %sNAME. "+
				"For a ManagedResource in a namespace called %s, use -n", text, of, arguments[of], kind)
		}
		return Name{of, types.NamespacedName{Name: rest}}, true, nil
	}
	switch {
	case !found:
	case kind == "shoot" || kind == "shoots":
		if len(parts) != 2 || parts[0] == "" || parts[1] == "" {
			return name, true, fmt.Errorf("%q does not name a Shoot: use shoot/NAMESPACE/NAME. "+
				"For a ManagedResource in a namespace called %s, use -n", text, kind)
		}
		return Name{Shoot, types.NamespacedName{Namespace: parts[0], Name: parts[1]}}, true, nil
	case kind == "seed" || kind == "seeds":
		return withoutNamespace(Seed)
	case kind == "gardens" || kind == "garden" && group == operatorv1alpha1.GroupName:
		return withoutNamespace(Garden)
	}
	return name, false, nil
}

// Of returns the Shoot, Seed or Garden that the arguments of a command name. It returns nil if they name ManagedResources.
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

// Dispatch calls ofOwner if the arguments of a command name a Shoot, Seed or Garden. Otherwise it calls the other function.
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
