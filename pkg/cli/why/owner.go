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

// resourceManager is the name of the ManagedResource with the resource-manager of a control plane.
const resourceManager = "gardener-resource-manager"

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
	var others, waits []resourcesv1alpha1.ManagedResource
	for i := range items {
		mr := &items[i]
		switch {
		case !unwell[state.NameOf(mr).String()]:
		case named(mr):
			causes = append(causes, *mr)
		case waitsForOthers(mr, unwell):
			waits = append(waits, *mr)
		default:
			others = append(others, *mr)
		}
	}
	if causes = append(causes, others...); len(causes) == 0 { // nothing else explains why they wait
		return waits, nil
	}
	for i := range waits {
		waiting = append(waiting, state.NameOf(&waits[i]).String())
	}
	return causes, waiting
}

// waitsForOthers reports whether a ManagedResource only waits: for others that are not well, or for the resource-manager
// of its control plane. The latter deploys all ManagedResources without a class in the namespace of the control plane,
// which none handles until it runs.
func waitsForOthers(mr *resourcesv1alpha1.ManagedResource, unwell map[string]bool) bool {
	switch is := state.Of(mr).Word; {
	case is == state.Waiting:
		return slices.ContainsFunc(mr.Dependencies(), func(on types.NamespacedName) bool { return unwell[on.String()] })
	case is == state.Pending && state.ClassOf(mr) == resourcesv1alpha1.DefaultClass:
		manager := types.NamespacedName{Namespace: mr.Namespace, Name: resourceManager}
		isUnwell, exists := unwell[manager.String()]
		return isUnwell || !exists
	}
	return false
}
