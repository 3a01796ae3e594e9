// Package act contains the commands that reconcile, suspend and resume ManagedResources, and wait for them.
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

// change describes what a command changes in each chosen ManagedResource.
type change struct {
	console.Choice
	all bool
	// past describes the finished change to the user, such as "suspended".
	past string
	// edit changes annotations. It returns false, and why, if there is nothing to change.
	edit func(mr *resourcesv1alpha1.ManagedResource) (changed bool, why string)
	// waits are the flags of a command that can wait for the result.
	waits waitFlags
}

// complete adds the arguments, flags and the run function that all of these commands have.
func (o *change) complete(c *console.Console, command *cobra.Command) *cobra.Command {
	command.ValidArgsFunction = c.CompleteNames(0)
	command.RunE = func(command *cobra.Command, names []string) error {
		chosen, err := o.run(command.Context(), c, names)
		if err != nil {
			return err
		}
		return o.waits.afterwards(command.Context(), c, chosen)
	}
	o.AddFlags(command.Flags())
	command.Flags().BoolVar(&o.all, "all", false, "Select all ManagedResources of the namespace")
	return command
}

func (o *change) run(ctx context.Context, c *console.Console, names []string) ([]resourcesv1alpha1.ManagedResource, error) {
	if len(names) == 0 && !o.all && !o.AllNamespaces && o.Selector == "" && o.Class == "" {
		return nil, errors.New("specify ManagedResources by name, --all, -A, -l or --class")
	}
	if len(names) > 0 && o.all {
		return nil, errors.New("names cannot be combined with --all")
	}
	chosen, err := c.Choose(ctx, names, o.Choice)
	if err != nil {
		return nil, err
	}
	if len(chosen) == 0 {
		return nil, errors.New("no ManagedResource matches")
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

// apply changes a ManagedResource. It returns a description of the change, or the reason why nothing was changed.
func (o *change) apply(ctx context.Context, source *console.Source, mr *resourcesv1alpha1.ManagedResource) (string, error) {
	before := mr.DeepCopy()
	if mr.Annotations == nil {
		mr.Annotations = map[string]string{}
	}
	changed, why := o.edit(mr)
	if !changed {
		return why, nil
	}
	// The patch contains only the annotations that differ, so that it does not conflict with other writers.
	err := source.Patch(ctx, mr, client.MergeFrom(before), client.FieldOwner(console.FieldManager))
	if err != nil {
		return "", fmt.Errorf("change ManagedResource %s: %w", state.NameOf(mr), err)
	}
	return o.past, nil
}

// NewSuspendCommand returns the command that suspends ManagedResources.
func NewSuspendCommand(c *console.Console) *cobra.Command {
	o := &change{past: "suspended", edit: func(mr *resourcesv1alpha1.ManagedResource) (bool, string) {
		if resourcesv1alpha1.Truthy(mr.Annotations[resourcesv1alpha1.AnnotationIgnore]) {
			return false, "is already suspended"
		}
		mr.Annotations[resourcesv1alpha1.AnnotationIgnore] = "true"
		return true, ""
	}}
	return o.complete(c, &cobra.Command{
		Use:   "suspend (NAME... | --all | -A | -l LABELS)",
		Short: "Suspend ManagedResources, to change their objects manually",
		Long: `Suspends ManagedResources with the annotation ` + resourcesv1alpha1.AnnotationIgnore + `: their objects are not applied,
corrected or checked until the ManagedResources are resumed. A suspended ManagedResource that is deleted is still cleaned up.`,
		Example: `  # change an object manually, without drift correction
  kubectl mr suspend webshop-app -n garden
  kubectl scale deployment/storefront -n webshop --replicas 0

  # show the changes, and revert them
  kubectl mr diff webshop-app -n garden
  kubectl mr resume webshop-app -n garden`,
	})
}

// NewResumeCommand returns the command that resumes suspended ManagedResources.
func NewResumeCommand(c *console.Console) *cobra.Command {
	o := &change{past: "resumed", edit: func(mr *resourcesv1alpha1.ManagedResource) (bool, string) {
		if !state.IsSuspended(mr) {
			return false, "is not suspended"
		}
		delete(mr.Annotations, resourcesv1alpha1.AnnotationIgnore)
		if mr.Annotations[resourcesv1alpha1.AnnotationOperation] == resourcesv1alpha1.OperationWaitForState {
			delete(mr.Annotations, resourcesv1alpha1.AnnotationOperation)
		}
		return true, ""
	}}
	command := o.complete(c, &cobra.Command{
		Use:   "resume (NAME... | --all | -A | -l LABELS)",
		Short: "Resume suspended ManagedResources",
		Long: `Resumes suspended ManagedResources. Manual changes to their objects are reverted. It also ends the operation ` +
			resourcesv1alpha1.OperationWaitForState + `.`,
		Example: `  kubectl mr resume webshop-app -n garden

  # resume all of the namespace, and wait until they are ready
  kubectl mr resume --all -n garden --wait`,
	})
	o.waits.addFlags(command)
	return command
}

// Reconcile requests the immediate reconciliation of a ManagedResource. It returns a description of the request, or
// the
// reason why nothing was requested.
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
	return &change{past: "reconciliation requested", edit: func(mr *resourcesv1alpha1.ManagedResource) (bool, string) {
		switch {
		case mr.Annotations[resourcesv1alpha1.AnnotationOperation] == resourcesv1alpha1.OperationWaitForState:
			return false, "is waiting for its state and is not reconciled; resume it with `kubectl mr resume`"
		case resourcesv1alpha1.Truthy(mr.Annotations[resourcesv1alpha1.AnnotationIgnore]) && mr.DeletionTimestamp == nil:
			return false, "is suspended and is not reconciled; resume it with `kubectl mr resume`"
		case mr.Annotations[resourcesv1alpha1.AnnotationOperation] == resourcesv1alpha1.OperationReconcile:
			return false, "reconciliation was requested before, and no resource-manager has processed the request yet"
		}
		mr.Annotations[resourcesv1alpha1.AnnotationOperation] = resourcesv1alpha1.OperationReconcile
		return true, ""
	}}
}

// NewReconcileCommand returns the command that reconciles ManagedResources immediately.
func NewReconcileCommand(c *console.Console) *cobra.Command {
	o := newReconcile()
	command := o.complete(c, &cobra.Command{
		Use:   "reconcile (NAME... | --all | -A | -l LABELS)",
		Short: "Reconcile ManagedResources immediately",
		Long: `Requests the immediate reconciliation of ManagedResources with the annotation ` + resourcesv1alpha1.AnnotationOperation + `=` +
			resourcesv1alpha1.OperationReconcile + `.
It is not needed after a change of objects or Secrets. It retries failures without waiting for the backoff.`,
		Example: `  # retry what failed, and wait until it is ready
  kubectl mr reconcile webshop-app -n garden --wait

  # reconcile all of a class
  kubectl mr reconcile -A --class seed`,
	})
	o.waits.addFlags(command)
	return command
}
