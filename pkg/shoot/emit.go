package shoot

import (
	"context"
	"fmt"

	"github.com/trellis-k8s/trellis/pkg/flow"
)

// compute makes the plan. While operations are stopped, extensions learn it first, and the plan contains no operation.
func (p *pass) compute(ctx context.Context) (err error) {
	if !p.decision.stopped {
		p.plan, err = Plan(p.in)
		return err
	}
	if p.decision.shown {
		if err := p.emitCluster(ctx); err != nil {
			return fmt.Errorf("show the extensions that the Shoot is not reconciled: %w", err)
		}
	}
	if p.over = !p.maintains(); p.over {
		return nil
	}
	p.in.Stopped = true
	if p.plan, err = Plan(p.in); err != nil {
		return err
	}
	live, err := flow.Observe(ctx, p.emitter.Reader, p.in.Owner, p.plan)
	if err != nil {
		return err
	}
	p.plan = p.in.withoutOperations(p.plan, live)
	return nil
}

// emit emits the plan. Bundles that cannot be written do not keep the other steps from being executed.
func (p *pass) emit(ctx context.Context) (err error) {
	p.result, err = p.emitter.Emit(ctx, p.in.Owner, p.plan)
	p.over = err != nil && p.result.Live.ManagedResources == nil // nothing is known about the control plane
	p.wake.In(syncPeriod(p.shoot, p.options.controller()))
	p.wake.At(p.plan.NextAt(p.in.Now))
	p.wake.At(p.result.Plan.NextAt(p.in.Now))
	return err
}
