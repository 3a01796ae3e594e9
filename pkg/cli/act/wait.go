package act

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/screen"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
)

// DefaultTimeout is the default of --timeout.
const DefaultTimeout = 5 * time.Minute

// goals are the values of --for. Each function reports whether a ManagedResource has reached the goal.
var goals = map[string]func(mr *resourcesv1alpha1.ManagedResource) bool{
	"ready": func(mr *resourcesv1alpha1.ManagedResource) bool {
		return hasNoPendingRequest(mr) && state.Of(mr).Word == state.Ready
	},
	"applied": func(mr *resourcesv1alpha1.ManagedResource) bool {
		return isTrue(mr, resourcesv1alpha1.ResourcesApplied)
	},
	"healthy": func(mr *resourcesv1alpha1.ManagedResource) bool {
		return isTrue(mr, resourcesv1alpha1.ResourcesApplied) && isTrue(mr, resourcesv1alpha1.ResourcesHealthy)
	},
	goalDeleted: func(*resourcesv1alpha1.ManagedResource) bool { return false },
}

const goalDeleted = "deleted"

// isTrue reports whether a condition of the current generation is True. The conditions of a suspended ManagedResource do not count.
func isTrue(mr *resourcesv1alpha1.ManagedResource, conditionType resourcesv1alpha1.ConditionType) bool {
	condition := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, conditionType)
	return hasNoPendingRequest(mr) && !state.IsSuspended(mr) && mr.Status.ObservedGeneration == mr.Generation &&
		condition.Status == resourcesv1alpha1.ConditionTrue && condition.Reason != resourcesv1alpha1.ReasonManagedResourceIgnored
}

// hasNoPendingRequest reports whether no reconciliation is requested. A requested reconciliation could change the
// result.
func hasNoPendingRequest(mr *resourcesv1alpha1.ManagedResource) bool {
	return mr.Annotations[resourcesv1alpha1.AnnotationOperation] != resourcesv1alpha1.OperationReconcile
}

// waiting waits until ManagedResources reach a goal.
type waiting struct {
	goal    string
	timeout time.Duration
	left    map[types.NamespacedName]state.State
}

// run waits until all chosen ManagedResources have reached the goal.
func (w *waiting) run(ctx context.Context, c *console.Console, names []string, choice console.Choice) error {
	chosen, err := w.choose(ctx, c, names, choice)
	if err != nil || len(chosen) == 0 {
		return err
	}
	w.left = map[types.NamespacedName]state.State{}
	for i := range chosen {
		w.left[state.NameOf(&chosen[i])] = state.Of(&chosen[i])
	}
	limited, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	progress := c.Begin("Waiting for " + screen.Count(len(w.left), "ManagedResource"))
	defer progress.End()
	err = c.Follow(limited, chosen, len(names) > 0, choice, func(mr *resourcesv1alpha1.ManagedResource, gone bool) error {
		if err := w.take(c, mr, gone); err != nil {
			return err
		}
		progress.Say("%s", w.describe())
		if len(w.left) == 0 {
			return console.Stop()
		}
		return nil
	})
	if err != nil || len(w.left) == 0 || ctx.Err() != nil {
		return errors.Join(err, ctx.Err())
	}
	return &console.NoError{Message: fmt.Sprintf("not %s within %s:\n%s", w.goal, w.timeout, w.details())}
}

// choose returns the ManagedResources to wait for. It reads each of them only once, because it may be deleted at any
// time.
// If deletion is the goal, choose prints the names that do not exist.
func (w *waiting) choose(
	ctx context.Context, c *console.Console, names []string, choice console.Choice,
) ([]resourcesv1alpha1.ManagedResource, error) {
	if w.goal == goalDeleted && len(names) > 0 {
		return chooseExisting(ctx, c, names, choice)
	}
	chosen, err := c.Choose(ctx, names, choice)
	if err == nil && len(chosen) == 0 {
		err = errors.New("no ManagedResource matches")
	}
	return chosen, err
}

// chooseExisting returns the named ManagedResources that exist, and prints that the others are deleted.
func chooseExisting(
	ctx context.Context, c *console.Console, names []string, choice console.Choice,
) ([]resourcesv1alpha1.ManagedResource, error) {
	var existing []resourcesv1alpha1.ManagedResource
	for _, name := range names {
		chosen, err := c.Choose(ctx, []string{name}, choice)
		var unknown *console.UnknownError
		switch {
		case errors.As(err, &unknown):
			fmt.Fprintf(c.Screen, "managedresource %s: %s\n", unknown.Name, goalDeleted)
		case err != nil:
			return nil, err
		default:
			existing = append(existing, chosen...)
		}
	}
	return existing, nil
}

// take processes a version of a ManagedResource.
func (w *waiting) take(c *console.Console, mr *resourcesv1alpha1.ManagedResource, gone bool) error {
	name := state.NameOf(mr)
	if _, waits := w.left[name]; !waits {
		return nil
	}
	switch is := state.Of(mr); {
	case gone && w.goal == goalDeleted, !gone && goals[w.goal](mr):
		delete(w.left, name)
		fmt.Fprintf(c.Screen, "managedresource %s: %s\n", name, w.goal)
	case gone:
		return &console.NoError{Message: fmt.Sprintf("ManagedResource %s was deleted", name)}
	case is.Word == state.Suspended && w.goal != goalDeleted:
		return &console.NoError{Message: fmt.Sprintf("ManagedResource %s is suspended; resume it with `kubectl mr resume`", name)}
	default:
		w.left[name] = is
	}
	return nil
}

func (w *waiting) describe() string {
	for _, name := range w.names() {
		is := w.left[name]
		return fmt.Sprintf("Waiting for %s: %s is %s", screen.Count(len(w.left), "ManagedResource"), name, is.Word)
	}
	return ""
}

func (w *waiting) details() string {
	const most = 10
	var lines []string
	for _, name := range w.names() {
		is := w.left[name]
		first, _, _ := strings.Cut(is.Message, "\n")
		lines = append(lines, fmt.Sprintf("  %s is %s: %s", name, is.Word, screen.CutEnd(screen.OneLine(first), 200)))
	}
	if len(lines) > most {
		lines = append(lines[:most], fmt.Sprintf("  and %d more", len(lines)-most))
	}
	return strings.Join(append(lines, "Run `kubectl mr why` for details."), "\n")
}

func (w *waiting) names() []types.NamespacedName {
	return slices.SortedFunc(maps.Keys(w.left), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
}

// NewWaitCommand returns the command that waits until ManagedResources reach a goal.
func NewWaitCommand(c *console.Console) *cobra.Command {
	o := struct {
		console.Choice
		waiting
	}{}
	words := slices.Sorted(maps.Keys(goals))
	command := &cobra.Command{
		Use:   "wait (NAME... | -A | -l LABELS)",
		Short: "Wait until ManagedResources are ready, or deleted",
		Long: `Waits until ManagedResources are applied, healthy and rolled out, or until another goal is reached:

  ready    all objects are applied, healthy and rolled out
  healthy  all objects are applied and healthy
  applied  all objects are applied
  deleted  the ManagedResource and its objects are deleted

The exit code is 0 if all of them reach the goal, and 1 on a timeout. Without names, it waits for the ManagedResources that exist now.`,
		Example: `  # in a pipeline: deliver manifests, then wait for the rollout
  kubectl mr create webshop -n garden -f manifests/
  kubectl mr wait webshop -n garden --timeout 10m

  # delete, and wait until all objects are deleted
  kubectl delete mr webshop -n garden --wait=false
  kubectl mr wait webshop -n garden --for deleted`,
		ValidArgsFunction: c.CompleteNames(0),
		RunE: func(command *cobra.Command, names []string) error {
			if goals[o.goal] == nil {
				return fmt.Errorf("invalid --for %q: must be one of %s", o.goal, strings.Join(words, ", "))
			}
			return o.run(command.Context(), c, names, o.Choice)
		},
	}
	o.AddFlags(command.Flags())
	command.Flags().StringVar(&o.goal, "for", "ready", "Goal to wait for: "+strings.Join(words, ", "))
	command.Flags().DurationVar(&o.timeout, "timeout", DefaultTimeout, "Maximum time to wait")
	if err := command.RegisterFlagCompletionFunc("for", cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag was defined above
	}
	return command
}

// waitFlags are the flags of commands that can wait for the result.
type waitFlags struct {
	wait    bool
	timeout time.Duration
}

func (f *waitFlags) addFlags(command *cobra.Command) {
	command.Flags().BoolVar(&f.wait, "wait", false, "Wait until they are ready")
	command.Flags().DurationVar(&f.timeout, "timeout", DefaultTimeout, "Maximum time to wait")
}

// afterwards waits for ManagedResources if --wait is set.
func (f *waitFlags) afterwards(ctx context.Context, c *console.Console, chosen []resourcesv1alpha1.ManagedResource) error {
	if !f.wait {
		return nil
	}
	names := make([]string, 0, len(chosen))
	for i := range chosen {
		names = append(names, state.NameOf(&chosen[i]).String())
	}
	return WaitReady(ctx, c, names, f.timeout)
}

// WaitReady waits until the named ManagedResources are ready.
func WaitReady(ctx context.Context, c *console.Console, names []string, timeout time.Duration) error {
	w := waiting{goal: "ready", timeout: timeout}
	return w.run(ctx, c, names, console.Choice{})
}
