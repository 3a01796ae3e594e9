package shoot

import (
	"context"
	"maps"
	"slices"
	"time"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/rotation"
	"github.com/trellis-k8s/trellis/pkg/secrets"
)

// rotate executes the next step of the rotations and changes of encryption that are under way.
func (p *pass) rotate(ctx context.Context) error {
	if p.decision.stopped {
		return nil
	}
	again, err := p.reconciler.rotate(ctx, &p.in, &p.Result)
	p.busy = p.busy || again > 0
	p.Wake.In(again)
	return err
}

// rotate runs the due tasks. If none is left and the plan is rolled out, it advances the phases in in.Shoot. It returns
// the time until the next call, or 0 if a watch triggers it. While work is left, it adds a wait to the result.
func (r *reconciler) rotate(ctx context.Context, in *Inputs, result *flow.Result) (time.Duration, error) {
	if in.Deleting || len(result.Plan.Tasks) == 0 && !in.moves() {
		return 0, nil
	}
	wait, again, err := r.step(in, result).Next(ctx)
	if wait != "" {
		result.Plan.Waits = append(result.Plan.Waits, flow.Wait{Name: rotation.Wait, Reason: wait})
	}
	return again, err
}

// step returns how to execute the next step.
func (r *reconciler) step(in *Inputs, result *flow.Result) rotation.Step {
	return rotation.Step{
		Owner: in.Owner, Ledger: in.Ledger, Writer: r.seed, Clock: r.options.Clock, Tasks: result.Plan.Tasks,
		Act:       func(task flow.Task) (flow.Act, bool) { return r.actOf(*in, task) },
		Unsettled: func(ctx context.Context) ([]string, error) { return r.unsettled(ctx, *in, *result) },
		Failed:    func() { r.ledgers.Forget(in.ledgerKey()) },
		Advance: func() { // a copy: the Shoot as read is the base of the patch of the status
			in.Shoot = in.Shoot.DeepCopy()
			in.Shoot.Status.Credentials, _ = advanced(in.Shoot.Status.Credentials, nil, in.Now)
		},
	}
}

// actOf returns how to execute a task, and whether it is known.
func (r *reconciler) actOf(in Inputs, task flow.Task) (flow.Act, bool) {
	switch {
	case task.Name == rotation.TaskRenewTokens:
		return rotation.Act(func(ctx context.Context, task flow.Task) (flow.Outcome, error) { return r.renewTokens(ctx, in, task) }), true
	case rotation.IsRewrite(task):
		return rotation.Act(func(ctx context.Context, task flow.Task) (flow.Outcome, error) {
			return r.rewriteObjects(ctx, in, task)
		}), true
	case slices.Contains(in.distributions(), task):
		return rotation.Nothing(), true
	}
	return flow.Act{}, false
}

// unsettled returns the parts of the plan that are not rolled out. It reads from the API server only if the caches show
// none, because they may be older than the start of the current phase. It does not do so again for each page of a rewrite.
func (r *reconciler) unsettled(ctx context.Context, in Inputs, result flow.Result) ([]string, error) {
	if len(result.Written) > 0 {
		return []string{"the plan has just been written"}, nil
	}
	if pending, err := r.pendingInPlace(ctx, in); err != nil || len(pending) > 0 {
		return pending, err
	}
	plan := result.Plan
	plan.Tasks = nil
	why, err := flow.Differences(in.Owner, plan, in.withoutUnchanged(result.Live), r.emitter.Rules)
	if err != nil || len(why) > 0 || r.rewrites.Continues(in.Owner.UID, result.Plan.Tasks) {
		return why, err
	}
	live, err := flow.ObserveUncached(ctx, r.uncached, in.Owner, plan, in.GardenNamespace, in.Namespace)
	if err != nil {
		return nil, err
	}
	return flow.Unsettled(in.Owner, plan, in.withoutUnchanged(live), r.emitter.Rules)
}

// withoutUnchanged removes the ManagedResources that the plan leaves out because they remain unchanged. They do not have to be rolled out: those
// with objects in the cluster of a Shoot that hibernates, and that of node agents if it is applied and was computed from the current
// OperatingSystemConfigs.
func (in Inputs) withoutUnchanged(live flow.Live) flow.Live {
	agents := live.ManagedResources[in.key(bundleNodeAgent)]
	known := in.ConfigsKnown && agents != nil && flow.IsApplied(agents)
	if !in.hibernated() && !known {
		return live
	}
	live.ManagedResources = maps.Clone(live.ManagedResources)
	maps.DeleteFunc(live.ManagedResources, func(key flow.Key, _ *resourcesv1alpha1.ManagedResource) bool {
		return in.hibernated() && key.Namespace == in.Namespace && isOfShoot(key.Name) || known && key == in.key(bundleNodeAgent)
	})
	return live
}

// deleteUnused deletes generated Secrets that are no longer used, such as the old ones after a rotation.
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
