package flow

import (
	"context"
	"errors"
	"time"

	"github.com/trellis-k8s/trellis/pkg/requeue"
)

// Pass is one reconciliation of an owner. A flow embeds it in a type with its own steps and what they share.
type Pass struct {
	// Wake collects when the next pass is due if no watch triggers one before. Each step may add a time.
	Wake requeue.Wake
	// Plan is what shall be. Result is set by [Pass.Emit]; later steps may add waits to its plan.
	Plan   Plan
	Result Result
	// Over skips the remaining steps.
	Over bool
}

// NewPass returns a pass that begins at a time.
func NewPass(now time.Time) Pass { return Pass{Wake: requeue.Wake{Now: now}} }

// PassStep is a part of a pass. If a needed step fails, the steps after it are skipped. The failure of any other step does not end
// the pass.
type PassStep struct {
	Run    func(context.Context) error
	Needed bool
}

// Run executes steps in their order until the pass is over. It returns the errors of all steps.
func (p *Pass) Run(ctx context.Context, steps []PassStep) error {
	var failed []error
	for _, step := range steps {
		if p.Over {
			break
		}
		if err := step.Run(ctx); err != nil {
			failed = append(failed, err)
			p.Over = p.Over || step.Needed
		}
	}
	return errors.Join(failed...)
}

// Emit emits the plan. Bundles that cannot be written do not keep the later steps from being executed. now is the time of the
// observation. After the sync period everything is computed again, and usually nothing is written.
func (p *Pass) Emit(ctx context.Context, emitter *Emitter, owner Owner, now time.Time, syncPeriod time.Duration) (err error) {
	p.Result, err = emitter.Emit(ctx, owner, p.Plan)
	p.Over = err != nil && p.Result.Live.ManagedResources == nil // nothing is known about the bundles
	p.Wake.In(syncPeriod)
	p.Wake.At(p.Plan.NextAt(now))
	p.Wake.At(p.Result.Plan.NextAt(now))
	return err
}
