package get

import (
	"context"
	"errors"
	"fmt"
	"slices"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/fleet"
)

// runOf prints a Shoot or Seed, and its ManagedResources in the order in which they are deployed.
func (o *options) runOf(ctx context.Context, c *console.Console, name fleet.Name) error {
	if o.watch {
		return errors.New("--watch is not supported for a Shoot or Seed: use `kubectl mr top " + name.Argument() + "`")
	}
	owner, err := fleet.Read(ctx, c, name)
	if err != nil {
		return err
	}
	all, err := owner.ManagedResources(ctx, c)
	if err != nil {
		return err
	}
	shown := slices.DeleteFunc(slices.Clone(all), func(mr resourcesv1alpha1.ManagedResource) bool { return !o.includes(&mr) })
	o.AllNamespaces = true // they are in two namespaces
	switch {
	case o.printsFullNames():
		return printFullNames(c, shown)
	case !o.output.IsText():
		return o.output.PrintObjects(c, shown, false)
	}
	now := c.Clock.Now()
	if err := owner.Print(c.Screen, now); err != nil {
		return err
	}
	switch {
	case len(all) == 0:
		c.Warn("%s", owner.WhyNone(c))
		return nil
	case len(shown) == 0:
		c.Warn("All %d ManagedResources of %s are ready or suspended.", len(all), name)
		return nil
	}
	if _, err := fmt.Fprintln(c.Screen); err != nil {
		return err
	}
	return c.Screen.Print(o.table(shown, now))
}
