package shoot

import (
	"context"
	"maps"
	"strings"
	"time"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

// waitRotation is the wait of an operation whose rotations have not reached their next phase.
const waitRotation = "credentials-rotation"

// operate begins the rotations that the Shoot is annotated with, and completes them. The annotation goes when the status has what it asks for.
func (r *reconciler) operate(ctx context.Context, shoot *corev1beta1.Shoot) error {
	if shoot.DeletionTimestamp != nil || shoot.Status.LastOperation == nil {
		return nil
	}
	status := *shoot.Status.DeepCopy()
	var left []string
	status.Credentials, left = operated(shoot, r.options.Clock.Now())
	if err := r.write(ctx, shoot, status); err != nil {
		return err
	}
	value, asked := shoot.Annotations[constants.AnnotationGardenerOperation]
	if rest := strings.Join(left, ";"); !asked || rest == value {
		return nil
	} else if rest != "" {
		return r.patch(ctx, shoot, func() { shoot.Annotations[constants.AnnotationGardenerOperation] = rest })
	}
	return r.patch(ctx, shoot, func() { delete(shoot.Annotations, constants.AnnotationGardenerOperation) })
}

// rotate carries out the tasks that are due, and moves phases on in the Shoot of the inputs, when all that the plan wants is rolled out. It returns how
// soon to look again; 0 for when a watch shows a change. While something is left to do, the result has a wait that says so.
func (r *reconciler) rotate(ctx context.Context, in *Inputs, result *flow.Result) (time.Duration, error) {
	if in.Deleting || len(result.Plan.Tasks) == 0 && !in.moves() {
		return 0, nil
	}
	waits := func(reason string) {
		result.Plan.Waits = append(result.Plan.Waits, flow.Wait{Name: waitRotation, Reason: reason})
	}
	unsettled, err := r.unsettled(ctx, *in, *result)
	if err != nil {
		return 0, err
	}
	if len(unsettled) > 0 {
		waits("credentials are rotated when all that has changed is rolled out")
		return 0, nil
	}
	if len(result.Plan.Tasks) > 0 {
		outcome, err := r.runTasks(ctx, *in, result.Plan.Tasks)
		if err != nil {
			r.ledgers.Forget(in.ledgerKey())
			return 0, err
		}
		if outcome.Progress != "" {
			waits(outcome.Progress)
		}
		return outcome.Again, nil
	}
	// The Shoot stays the one that was read: what is written is the difference.
	in.Shoot = in.Shoot.DeepCopy()
	in.Shoot.Status.Credentials, _ = advanced(in.Shoot.Status.Credentials, unsettled, in.Now)
	return time.Millisecond, nil
}

// runTasks carries out tasks one after the other, until one is not done at once. All of them need the same: that the plan is rolled out.
func (r *reconciler) runTasks(ctx context.Context, in Inputs, tasks []flow.Task) (flow.Outcome, error) {
	runner := flow.Runner{Writer: r.seed, Clock: r.options.Clock, Acts: map[string]flow.Act{}}
	for _, task := range tasks {
		switch {
		case task.Name == taskRenewTokens:
			runner.Acts[task.Name] = flow.Act{Run: func(ctx context.Context, _ flow.Owner, task flow.Task) (flow.Outcome, error) {
				return r.renewTokens(ctx, in, task)
			}}
		case strings.HasPrefix(task.Name, taskRewrite):
			runner.Acts[task.Name] = flow.Act{Run: func(ctx context.Context, _ flow.Owner, task flow.Task) (flow.Outcome, error) {
				return r.rewriteObjects(ctx, in, task)
			}}
		default: // all servers accept the new credentials: they have rolled out the plan
			runner.Acts[task.Name] = flow.Act{Run: func(context.Context, flow.Owner, flow.Task) (flow.Outcome, error) {
				return flow.Outcome{Done: true}, nil
			}}
		}
		outcome, err := runner.Run(ctx, in.Owner, in.Ledger, []flow.Task{task})
		if err != nil || !outcome.Done {
			return outcome, err
		}
	}
	return flow.Outcome{Done: true, Again: time.Millisecond}, nil // with the plan after that
}

// unsettled says what of the plan is not rolled out. It asks the API server only if the caches do not show anything: at the beginning of a phase, they
// may show the time before.
func (r *reconciler) unsettled(ctx context.Context, in Inputs, result flow.Result) ([]string, error) {
	if len(result.Written) > 0 {
		return []string{"the plan has just been written"}, nil
	}
	plan := result.Plan
	plan.Tasks = nil
	live := result.Live
	for _, uncached := range []bool{false, true} {
		if uncached {
			var err error
			if live, err = flow.Observe(ctx, r.uncached, in.Owner, plan); err != nil {
				return nil, err
			}
		}
		live.Uncached = true
		if in.hibernated() {
			// What is in the cluster stays as it is, and the plan does not mention it.
			live.ManagedResources = maps.Clone(live.ManagedResources)
			maps.DeleteFunc(live.ManagedResources, func(key flow.Key, _ *resourcesv1alpha1.ManagedResource) bool {
				return key.Namespace == in.Namespace && isOfShoot(key.Name)
			})
		}
		why, err := flow.Unsettled(in.Owner, plan, live, r.emitter.Rules)
		if err != nil || len(why) > 0 {
			return why, err
		}
	}
	return nil, nil
}

// secretsManager returns the keeper of the Secrets of a control plane, and wantedSecrets what it is asked for.
func (r *reconciler) secretsManager(in Inputs) *secrets.Manager {
	return &secrets.Manager{Reader: r.caches.material, Uncached: r.uncached, Writer: r.seed, Namespace: in.Namespace, Identity: identity, Clock: r.options.Clock}
}

func (in Inputs) wantedSecrets() secrets.Wanted {
	return secrets.Wanted{Configs: in.secretConfigs(), Rotations: in.rotations()}
}

// deleteUnused deletes the Secrets that nothing uses any more, such as the old ones after a rotation.
func (r *reconciler) deleteUnused(ctx context.Context, in Inputs, result flow.Result) error {
	if !in.SecretsUnused || in.Deleting || in.moves() || len(result.Plan.Tasks) > 0 {
		return nil
	}
	if unsettled, err := r.unsettled(ctx, in, result); err != nil || len(unsettled) > 0 {
		return err
	}
	referred, err := secrets.ReferredIn(ctx, r.uncached, in.Namespace, result.Plan.Objects())
	if err != nil {
		return err
	}
	return r.secretsManager(in).CleanUp(ctx, in.wantedSecrets(), nil, referred)
}
