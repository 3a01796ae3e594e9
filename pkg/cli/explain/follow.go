package explain

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/relations"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
)

// maxFollowed is the maximum number of ManagedResources whose dependencies are followed.
const maxFollowed = 20

// follower finds the ManagedResources that others wait for.
type follower struct {
	console *console.Console
	source  *console.Source
	// chosen are the ManagedResources to explain. states are the states of all ManagedResources that were read, by name.
	chosen []resourcesv1alpha1.ManagedResource
	states map[string]state.Word
	// all are all ManagedResources. They are read when the first waiting deletion is found.
	all []resourcesv1alpha1.ManagedResource
}

// follow appends the ManagedResources that the chosen ones wait for, unless they are ready. It also returns the
// states of all
// ManagedResources that were read, by name.
func follow(
	ctx context.Context, c *console.Console, chosen []resourcesv1alpha1.ManagedResource,
) ([]resourcesv1alpha1.ManagedResource, map[string]state.Word, error) {
	source, err := c.Source()
	if err != nil {
		return nil, nil, err
	}
	f := &follower{console: c, source: source, chosen: chosen, states: map[string]state.Word{}}
	for i := range chosen {
		f.states[state.NameOf(&chosen[i]).String()] = state.Of(&chosen[i]).Word
	}
	for i := 0; i < len(f.chosen) && i < maxFollowed; i++ {
		mr := f.chosen[i]
		switch is := state.Of(&mr); {
		case is.Word == state.Waiting:
			for _, name := range mr.Dependencies() {
				f.add(ctx, name)
			}
		case is.Reason == resourcesv1alpha1.ReasonDeletionWaits:
			for _, name := range f.dependents(ctx, &mr) {
				f.add(ctx, name)
			}
		}
	}
	return f.chosen, f.states, nil
}

// add reads a ManagedResource. It skips one that cannot be read: the condition of the waiting ManagedResource names
// it.
func (f *follower) add(ctx context.Context, name types.NamespacedName) {
	if _, known := f.states[name.String()]; known {
		return
	}
	mr, err := f.source.GetManagedResource(ctx, name)
	if err != nil {
		return
	}
	f.states[name.String()] = state.Of(mr).Word
	if state.Of(mr).Word != state.Ready || mr.DeletionTimestamp != nil {
		f.chosen = append(f.chosen, *mr)
	}
}

// dependents returns the ManagedResources that must be deleted before another one.
func (f *follower) dependents(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) []types.NamespacedName {
	if named, set := mr.DeletedAfter(); set {
		return named
	}
	if f.all == nil {
		list := &resourcesv1alpha1.ManagedResourceList{}
		if err := f.source.List(ctx, list); err != nil {
			f.console.Warn("%v", fmt.Errorf("dependents of ManagedResource %s are not shown: %w", state.NameOf(mr), err))
		}
		f.all = append([]resourcesv1alpha1.ManagedResource{}, list.Items...)
	}
	return relations.Dependents(mr, f.all)
}
