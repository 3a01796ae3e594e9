package garden

import (
	"context"
	"slices"
	"strings"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/rotation"
)

// operate starts and completes the rotations for which the Garden is annotated. It removes the annotation once the status contains the request.
func (p *pass) operate(ctx context.Context) error {
	garden := p.garden
	if garden.DeletionTimestamp != nil || garden.Status.LastOperation == nil {
		return nil
	}
	status := *garden.Status.DeepCopy()
	var left []string
	status.Credentials, left = operated(garden, p.Wake.Now)
	if err := p.write(ctx, garden, status); err != nil {
		return err
	}
	value, requested := garden.Annotations[constants.AnnotationGardenerOperation]
	rest := strings.Join(left, ";")
	if !requested || rest == value {
		return nil
	}
	return p.patch(ctx, garden, func() {
		if delete(garden.Annotations, constants.AnnotationGardenerOperation); rest != "" {
			garden.Annotations[constants.AnnotationGardenerOperation] = rest
		}
	})
}

// rotate executes the next step of the rotations and changes of encryption that are under way. If no task is left and the plan is rolled out, it
// advances the phases in the inputs.
func (p *pass) rotate(ctx context.Context) error {
	if p.in.Deleting || len(p.Result.Plan.Tasks) == 0 && !p.in.moves() {
		return nil
	}
	wait, again, err := p.step().Next(ctx)
	if wait != "" {
		p.Result.Plan.Waits = append(p.Result.Plan.Waits, flow.Wait{Name: rotation.Wait, Reason: wait})
	}
	p.Wake.In(again)
	return err
}

// step returns how to execute the next step.
func (p *pass) step() rotation.Step {
	return rotation.Step{
		Owner: p.in.Owner, Ledger: p.in.Ledger, Writer: p.runtime, Clock: p.options.Clock, Tasks: p.Result.Plan.Tasks,
		Act:       func(task flow.Task) (flow.Act, bool) { return p.actOf(p.in, task) },
		Unsettled: func(ctx context.Context) ([]string, error) { return p.unsettled(ctx, p.in, p.Result) },
		Failed:    func() { p.ledgers.Forget(p.in.key(ledgerName)) },
		Advance: func() { // a copy, because inputs are values
			p.in.Garden = p.in.Garden.DeepCopy()
			p.in.Garden.Status.Credentials, _ = advanced(p.in.Garden.Status.Credentials, nil, p.in.Now)
		},
	}
}

// actOf returns how to execute a task, and whether it is known.
func (r *reconciler) actOf(in Inputs, task flow.Task) (flow.Act, bool) {
	switch {
	case task.Name == rotation.TaskRenewTokens:
		return rotation.Act(func(ctx context.Context, task flow.Task) (flow.Outcome, error) {
			return rotation.Tokens{Uncached: r.uncached, Writer: r.runtime, Namespace: in.Namespace, FieldManager: fieldManager}.Renew(ctx, task, in.Now)
		}), true
	case rotation.IsRewrite(task):
		return rotation.Act(func(ctx context.Context, task flow.Task) (flow.Outcome, error) {
			virtual, err := r.connect(in)
			if err != nil {
				return flow.Outcome{}, err
			}
			return r.rewrites.Rewrite(ctx, virtual, "the virtual garden", in.Owner.UID, task)
		}), true
	case slices.Contains(in.distributions(), task):
		return rotation.Nothing(), true
	case strings.HasPrefix(task.Name, taskOrder):
		return rotation.Act(func(ctx context.Context, task flow.Task) (flow.Outcome, error) { return r.askSeeds(ctx, in, task) }), true
	case strings.HasPrefix(task.Name, taskAwait):
		return rotation.Act(func(ctx context.Context, task flow.Task) (flow.Outcome, error) { return r.awaitSeeds(ctx, in, task) }), true
	}
	return flow.Act{}, false
}

// unsettled returns the parts of the plan that are not rolled out. It reads from the API server only if the caches show none, because they may be
// older than the start of the current phase. It does not do so again for each page of a rewrite.
func (r *reconciler) unsettled(ctx context.Context, in Inputs, result flow.Result) ([]string, error) {
	if len(result.Written) > 0 {
		return []string{"the plan has just been written"}, nil
	}
	plan := result.Plan
	plan.Tasks = nil
	why, err := flow.Differences(in.Owner, plan, result.Live, r.emitter.Rules)
	if err != nil || len(why) > 0 || r.rewrites.Continues(in.Owner.UID, result.Plan.Tasks) {
		return why, err
	}
	live, err := flow.ObserveUncached(ctx, r.uncached, in.Owner, plan, in.Namespace)
	if err != nil {
		return nil, err
	}
	return flow.Unsettled(in.Owner, plan, live, r.emitter.Rules)
}
