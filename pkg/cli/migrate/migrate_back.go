package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
)

// goBack removes the condition Ready from ManagedResources. gardener-resource-manager does not know it, and would not
// update it.
func (o *options) goBack(ctx context.Context, c *console.Console, names []string) error {
	if len(names) == 0 && !o.AllNamespaces && o.Selector == "" && o.Class == "" {
		return errors.New("specify the ManagedResources to hand back by name, -A, -l or --class")
	}
	if !o.HasNoManifests() || o.from != "" || o.output.Format != "" {
		return errors.New("--back cannot be combined with manifests, --from and -o")
	}
	chosen, err := c.Choose(ctx, names, o.Choice)
	if err != nil {
		return err
	}
	source, err := c.Source()
	if err != nil {
		return err
	}
	var errs []error
	for i := range chosen {
		done, err := removeReady(ctx, source, &chosen[i])
		if err != nil {
			errs = append(errs, err)
			continue
		}
		fmt.Fprintf(c.Screen, "managedresource %s: %s\n", state.NameOf(&chosen[i]), done)
	}
	return errors.Join(errs...)
}

// removeReady removes the condition Ready, and describes the result. It fails with a conflict if another client, such
// as a running
// resource-manager, writes the ManagedResource at the same time.
func removeReady(ctx context.Context, source client.Client, mr *resourcesv1alpha1.ManagedResource) (string, error) {
	before := mr.DeepCopy()
	mr.Status.Conditions = slices.DeleteFunc(mr.Status.Conditions, func(condition resourcesv1alpha1.Condition) bool {
		return condition.Type == resourcesv1alpha1.Ready
	})
	if len(mr.Status.Conditions) == len(before.Status.Conditions) {
		return "does not have the condition Ready", nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := source.Status().Patch(ctx, mr, patch, client.FieldOwner(console.FieldManager)); err != nil {
		return "", fmt.Errorf("remove the condition Ready of ManagedResource %s (stop the resource-manager first): %w", state.NameOf(before), err)
	}
	return "removed the condition Ready", nil
}
