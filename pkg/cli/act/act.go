// Package act holds the commands that ask something of resource-managers: to reconcile, to leave alone, and to be waited for.
package act

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
)

// fieldManager owns the annotations that these commands write. They are changes by hand: Gardener's own controllers and
// kubectl may take them away.
const fieldManager = "kubectl-mr"

// change is what a command does to each chosen ManagedResource.
type change struct {
	console.Choice
	all bool
	// past is what was done, for people.
	past string
	// edit changes annotations. It returns false, and why, if there is nothing to change.
	edit func(mr *resourcesv1alpha1.ManagedResource) (changed bool, why string)
}

func (o *change) addFlags(command *cobra.Command) {
	o.AddFlags(command.Flags())
	command.Flags().BoolVar(&o.all, "all", false, "All of the namespace")
}

func (o *change) run(ctx context.Context, c *console.Console, names []string) ([]resourcesv1alpha1.ManagedResource, error) {
	if len(names) == 0 && !o.all && !o.AllNamespaces && o.Selector == "" && o.Class == "" {
		return nil, errors.New("say which ManagedResources are meant: names, --all, -A, -l or --class")
	}
	if len(names) > 0 && o.all {
		return nil, errors.New("names cannot be combined with --all")
	}
	chosen, err := c.Choose(ctx, names, o.Choice)
	if err != nil {
		return nil, err
	}
	if len(chosen) == 0 {
		return nil, errors.New("no ManagedResource is chosen by that")
	}
	source, err := c.Source()
	if err != nil {
		return nil, err
	}
	var errs []error
	for i := range chosen {
		done, err := o.apply(ctx, source, &chosen[i])
		if err != nil {
			errs = append(errs, err)
			continue
		}
		fmt.Fprintf(c.Screen, "managedresource %s: %s\n", state.NameOf(&chosen[i]), done)
	}
	return chosen, errors.Join(errs...)
}

// apply changes a ManagedResource, and returns what was done or why nothing was.
func (o *change) apply(ctx context.Context, source *console.Source, mr *resourcesv1alpha1.ManagedResource) (string, error) {
	before := mr.DeepCopy()
	if mr.Annotations == nil {
		mr.Annotations = map[string]string{}
	}
	changed, why := o.edit(mr)
	if !changed {
		return why, nil
	}
	// Of the annotations, those that differ: no conflict with what others write.
	err := source.Patch(ctx, mr, client.MergeFrom(before), client.FieldOwner(fieldManager))
	if err != nil {
		return "", fmt.Errorf("change ManagedResource %s: %w", state.NameOf(mr), err)
	}
	return o.past, nil
}

// NewSuspendCommand returns the command that has ManagedResources left alone.
func NewSuspendCommand(c *console.Console) *cobra.Command {
	o := &change{past: "suspended", edit: func(mr *resourcesv1alpha1.ManagedResource) (bool, string) {
		if resourcesv1alpha1.Truthy(mr.Annotations[resourcesv1alpha1.AnnotationIgnore]) {
			return false, "was suspended before"
		}
		mr.Annotations[resourcesv1alpha1.AnnotationIgnore] = "true"
		return true, ""
	}}
	command := &cobra.Command{
		Use:   "suspend (NAME... | --all | -A | -l LABELS)",
		Short: "Have ManagedResources left alone, to change their objects by hand",
		Long: `Has ManagedResources left alone, by the annotation ` + resourcesv1alpha1.AnnotationIgnore + `: their objects are neither
applied nor put back nor checked, until they are resumed. A ManagedResource that is deleted meanwhile is cleaned up all the same.`,
		Example: `  # change an object by hand without having it put back
  kubectl mr suspend webshop-app -n garden
  kubectl scale deployment/storefront -n webshop --replicas 0

  # what was changed, and have it put back
  kubectl mr diff webshop-app -n garden
  kubectl mr resume webshop-app -n garden`,
		ValidArgsFunction: c.CompleteNames(0),
		RunE: func(command *cobra.Command, names []string) error {
			_, err := o.run(command.Context(), c, names)
			return err
		},
	}
	o.addFlags(command)
	return command
}

// NewResumeCommand returns the command that ends what suspend began.
func NewResumeCommand(c *console.Console) *cobra.Command {
	o := &change{past: "resumed", edit: func(mr *resourcesv1alpha1.ManagedResource) (bool, string) {
		if !state.IsSuspended(mr) {
			return false, "was not suspended"
		}
		delete(mr.Annotations, resourcesv1alpha1.AnnotationIgnore)
		if mr.Annotations[resourcesv1alpha1.AnnotationOperation] == resourcesv1alpha1.OperationWaitForState {
			delete(mr.Annotations, resourcesv1alpha1.AnnotationOperation)
		}
		return true, ""
	}}
	var waits waitFlags
	command := &cobra.Command{
		Use:   "resume (NAME... | --all | -A | -l LABELS)",
		Short: "Have suspended ManagedResources cared for again",
		Long: `Takes back what suspend did: objects that were changed meanwhile are put back. It ends operations ` +
			resourcesv1alpha1.OperationWaitForState + `, too.`,
		Example: `  kubectl mr resume webshop-app -n garden

  # all of the namespace, and wait until they are ready
  kubectl mr resume --all -n garden --wait`,
		ValidArgsFunction: c.CompleteNames(0),
		RunE: func(command *cobra.Command, names []string) error {
			chosen, err := o.run(command.Context(), c, names)
			if err != nil {
				return err
			}
			return waits.afterwards(command.Context(), c, chosen)
		},
	}
	o.addFlags(command)
	waits.addFlags(command)
	return command
}

// Reconcile has a ManagedResource applied at once. It returns what was done, or why nothing was.
func Reconcile(ctx context.Context, c *console.Console, name types.NamespacedName) (string, error) {
	source, err := c.Source()
	if err != nil {
		return "", err
	}
	mr, err := source.GetManagedResource(ctx, name)
	if err != nil {
		return "", err
	}
	return newReconcile().apply(ctx, source, mr)
}

func newReconcile() *change {
	return &change{past: "asked to be reconciled", edit: func(mr *resourcesv1alpha1.ManagedResource) (bool, string) {
		switch {
		case mr.Annotations[resourcesv1alpha1.AnnotationOperation] == resourcesv1alpha1.OperationWaitForState:
			return false, "waits for its state and is not reconciled; `kubectl mr resume` ends that"
		case resourcesv1alpha1.Truthy(mr.Annotations[resourcesv1alpha1.AnnotationIgnore]) && mr.DeletionTimestamp == nil:
			return false, "is suspended and is not reconciled; `kubectl mr resume` ends that"
		case mr.Annotations[resourcesv1alpha1.AnnotationOperation] == resourcesv1alpha1.OperationReconcile:
			return false, "was asked before, and no resource-manager has taken it in yet"
		}
		mr.Annotations[resourcesv1alpha1.AnnotationOperation] = resourcesv1alpha1.OperationReconcile
		return true, ""
	}}
}

// NewReconcileCommand returns the command that has ManagedResources applied at once.
func NewReconcileCommand(c *console.Console) *cobra.Command {
	o := newReconcile()
	var waits waitFlags
	command := &cobra.Command{
		Use:   "reconcile (NAME... | --all | -A | -l LABELS)",
		Short: "Have ManagedResources applied at once",
		Long: `Has ManagedResources applied at once, by the annotation ` + resourcesv1alpha1.AnnotationOperation + `=` +
			resourcesv1alpha1.OperationReconcile + `. Objects and Secrets that
change are noticed without it; it ends the wait before what failed is tried again.`,
		Example: `  # try again what failed, and wait until all is well
  kubectl mr reconcile webshop-app -n garden --wait

  # all of a class
  kubectl mr reconcile -A --class seed`,
		ValidArgsFunction: c.CompleteNames(0),
		RunE: func(command *cobra.Command, names []string) error {
			chosen, err := o.run(command.Context(), c, names)
			if err != nil {
				return err
			}
			return waits.afterwards(command.Context(), c, chosen)
		},
	}
	o.addFlags(command)
	waits.addFlags(command)
	return command
}
