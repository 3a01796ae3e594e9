package fleet

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/readiness"
)

// flows are the values of flow.LabelFlow by the kind of the owner.
var flows = map[string]string{Shoot: "shoot", Seed: "seed", Garden: "garden"}

// installations is the value of flow.LabelFlow of ControllerInstallations.
const installations = "controllerinstallation"

// withoutFlow selects the ManagedResources that no flow emitted.
func withoutFlow() client.ListOption {
	without, err := labels.NewRequirement(flow.LabelFlow, selection.DoesNotExist, nil)
	if err != nil {
		return client.MatchingLabelsSelector{Selector: labels.Nothing()} // impossible: the label is a valid key
	}
	return client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*without)}
}

// Scopes returns the options of the list requests that together return all ManagedResources of an owner. It returns
// none if the
// namespace of the owner is not known yet. The namespace of a control plane also has the ManagedResources of
// extensions. Those of a Seed are the ones on which its health may depend: see [readiness.IsSeedComponent].
func (o *Owner) Scopes() [][]client.ListOption {
	own := client.MatchingLabels{flow.LabelFlow: flows[o.Kind], flow.LabelOwner: string(o.UID)}
	emitted := []client.ListOption{client.InNamespace(constants.GardenNamespace), own}
	switch {
	case o.Kind == Seed:
		namespace := client.InNamespace(constants.GardenNamespace)
		required := client.MatchingLabels{constants.LabelGardenRole: constants.RoleSeedSystemComponent, flow.LabelFlow: installations}
		return [][]client.ListOption{emitted, {namespace, required}, {namespace, withoutFlow()}}
	case o.Kind == Garden:
		return [][]client.ListOption{emitted}
	case o.TechnicalID == "":
		return nil
	}
	return [][]client.ListOption{emitted, {client.InNamespace(o.TechnicalID)}}
}

// Console returns the console for the objects of the owner's ManagedResources.
func (o *Owner) Console(c *console.Console) *console.Console { return c.OfFlow(o.Kind != Seed) }

// ManagedResources reads the ManagedResources of an owner, in the order in which they are deployed.
func (o *Owner) ManagedResources(ctx context.Context, c *console.Console) ([]resourcesv1alpha1.ManagedResource, error) {
	source, err := c.Source()
	if err != nil {
		return nil, err
	}
	progress := c.Begin("Reading ManagedResources")
	defer progress.End()
	var all []resourcesv1alpha1.ManagedResource
	for _, options := range o.Scopes() {
		items, err := source.ListManagedResources(ctx, func(count int) { progress.Say("Reading ManagedResources (%d)", count) }, options...)
		if err != nil {
			return nil, err
		}
		all = append(all, items...)
	}
	if o.Kind == Seed {
		all = slices.DeleteFunc(all, func(mr resourcesv1alpha1.ManagedResource) bool { return !readiness.IsSeedComponent(&mr) })
	}
	return slices.Concat(Steps(all)...), nil
}

// WhyNone explains why an owner has no ManagedResources, with advice.
func (o *Owner) WhyNone(c *console.Console) string {
	host := ""
	if source, err := c.Source(); err == nil {
		host = " " + source.Host
	}
	switch {
	case o.SeedIsMissing:
		return fmt.Sprintf("Seed %s, which %s names, does not exist in the garden. Correct spec.seedName, or register the Seed.", o.SeedName, o.Name)
	case len(o.LastErrors) > 0 || o.LastOperation != nil && o.LastOperation.State == corev1beta1.LastOperationStateError:
		return fmt.Sprintf("%s has no ManagedResources. Correct the error above first.", o.Name)
	case o.Kind == Seed:
		return fmt.Sprintf("No ManagedResource of %s is in the cluster%s. Check that this is the cluster of the Seed (--context), "+
			"and that its gardenlet is running.", o.Name, host)
	case o.Kind == Garden:
		return fmt.Sprintf("No ManagedResource of %s is in the cluster%s. Check that the operator is running.", o.Name, host)
	case o.SeedName == "":
		return fmt.Sprintf("%s is not scheduled yet: spec.seedName is empty. Wait for the scheduler to choose a Seed, or set it.", o.Name)
	case o.TechnicalID == "":
		return fmt.Sprintf("The gardenlet of Seed %s has not begun to reconcile %s. Check that it is running, and that the Seed is ready: "+
			"`kubectl mr get seed/%s`.", o.SeedName, o.Name, o.SeedName)
	}
	return fmt.Sprintf("No ManagedResource of %s is in the cluster%s. Check that this is the cluster of Seed %s (--context).",
		o.Name, host, o.SeedName)
}

// Steps groups ManagedResources into steps, in the order in which they are deployed. A ManagedResource depends on one
// in the
// previous step, or is deleted before one in it. A step is sorted by namespace and name. In a dependency cycle, one
// of the
// ManagedResources comes first.
func Steps(items []resourcesv1alpha1.ManagedResource) [][]resourcesv1alpha1.ManagedResource {
	before := map[types.NamespacedName][]types.NamespacedName{}
	for i := range items {
		own := state.NameOf(&items[i])
		before[own] = append(before[own], items[i].Dependencies()...)
		later, _ := items[i].DeletedAfter()
		for _, name := range later {
			before[name] = append(before[name], own)
		}
	}
	ranks := map[types.NamespacedName]int{}
	for i := range items {
		ranks[state.NameOf(&items[i])] = 0 // used for cycles, while the rank is being computed
	}
	computed := map[types.NamespacedName]bool{}
	var rank func(types.NamespacedName) int
	rank = func(name types.NamespacedName) int {
		if computed[name] {
			return ranks[name]
		}
		computed[name] = true
		highest := 0
		for _, earlier := range before[name] {
			if _, known := ranks[earlier]; known && earlier != name {
				highest = max(highest, rank(earlier)+1)
			}
		}
		ranks[name] = highest
		return highest
	}
	sorted := slices.SortedFunc(slices.Values(items), func(a, b resourcesv1alpha1.ManagedResource) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	var steps [][]resourcesv1alpha1.ManagedResource
	for i := range sorted {
		at := rank(state.NameOf(&sorted[i]))
		for len(steps) <= at {
			steps = append(steps, nil)
		}
		steps[at] = append(steps[at], sorted[i])
	}
	return slices.DeleteFunc(steps, func(step []resourcesv1alpha1.ManagedResource) bool { return len(step) == 0 })
}
