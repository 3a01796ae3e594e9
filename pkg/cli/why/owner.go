package why

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/explain"
	"github.com/trellis-k8s/trellis/pkg/cli/fleet"
	"github.com/trellis-k8s/trellis/pkg/cli/screen"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
)

// ownerReport is the JSON and YAML output for a Shoot or Seed.
type ownerReport struct {
	fleet.Report
	// Waiting are the ManagedResources that only wait for others.
	Waiting          []string             `json:"waiting,omitempty"`
	ManagedResources *explain.Explanation `json:"managedResources"`
}

// runOf explains the state of a Shoot or Seed: its errors, its ManagedResources that are not ready, and their
// objects.
func (o *options) runOf(ctx context.Context, c *console.Console, name fleet.Name) error {
	owner, err := fleet.Read(ctx, c, name)
	if err != nil {
		return err
	}
	items, err := owner.ManagedResources(ctx, c)
	if err != nil {
		return err
	}
	causes, waiting := split(items, owner)
	explanation, err := explain.All(ctx, owner.Console(c), causes, false)
	if err != nil {
		return err
	}
	if o.output.Format != "" {
		return c.PrintValue(o.output.Format, ownerReport{owner.Report(), waiting, explanation})
	}
	now := c.Clock.Now()
	if err := owner.Print(c.Screen, now); err != nil {
		return err
	}
	switch {
	case len(items) == 0:
		c.Warn("%s", owner.WhyNone(c))
		return nil
	case len(causes) == 0:
		c.Warn("All ManagedResources of %s are ready or suspended (%d).", name, len(items))
		return nil
	}
	if err := explanation.PrintNext(c.Screen, now); err != nil || len(waiting) == 0 {
		return err
	}
	return c.Screen.Paragraph("", screen.Plain, fmt.Sprintf("\n%d more wait for these: %s", len(waiting), strings.Join(waiting, ", ")))
}

// split returns the ManagedResources that are not well, and the names of those that only wait for others of them.
// ManagedResources
// that the errors of the owner name come first.
func split(items []resourcesv1alpha1.ManagedResource, owner *fleet.Owner) (causes []resourcesv1alpha1.ManagedResource, waiting []string) {
	named := func(mr *resourcesv1alpha1.ManagedResource) bool {
		for _, each := range owner.LastErrors {
			if each.TaskID != nil && *each.TaskID == mr.Name {
				return true
			}
		}
		return false
	}
	unwell := map[string]bool{}
	for i := range items {
		unwell[state.NameOf(&items[i]).String()] = !state.Of(&items[i]).Word.IsWell()
	}
	var others []resourcesv1alpha1.ManagedResource
	for i := range items {
		mr := &items[i]
		waits := state.Of(mr).Word == state.Waiting &&
			slices.ContainsFunc(mr.Dependencies(), func(on types.NamespacedName) bool { return unwell[on.String()] })
		switch {
		case !unwell[state.NameOf(mr).String()]:
		case named(mr):
			causes = append(causes, *mr)
		case waits:
			waiting = append(waiting, state.NameOf(mr).String())
		default:
			others = append(others, *mr)
		}
	}
	return append(causes, others...), waiting
}
