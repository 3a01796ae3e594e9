package seed

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/latest"
	"github.com/trellis-k8s/trellis/pkg/requeue"
)

// begin writes the status at the start of an operation.
func (p *pass) begin(ctx context.Context) error { return p.write(ctx, p.seed, p.started(p.in)) }

// report shows the outcome of a pass in the status, and returns when the next pass is due. A failure takes the place of
// the progress, so that they do not alternate.
func (p *pass) report(ctx context.Context, failure error) (reconcile.Result, error) {
	if failure == nil {
		status, later := p.progress(p.in, p.Result)
		p.Wake.In(later)
		failure = p.write(ctx, p.seed, status)
	}
	if failure == nil && p.in.Deleting {
		failure = p.finish(ctx)
	}
	passes := p.troubled.Passes(p.seed.UID, failure, p.Wake.Now)
	switch {
	case failure == nil:
		return p.Wake.Result(), nil
	case requeue.OnlyConflicts(failure):
		return reconcile.Result{RequeueAfter: requeue.AfterConflict}, nil
	case passes:
		return reconcile.Result{}, failure
	}
	failure = errors.Join(failure, p.write(ctx, p.seed, p.failed(p.seed, failure)))
	p.events.Eventf(p.seed, nil, corev1.EventTypeWarning, eventError, actionReconcile, "%s", flow.ReasonOf(failure))
	return reconcile.Result{}, failure
}

// patch applies a change to the Seed with optimistic locking.
func (r *reconciler) patch(ctx context.Context, seed *corev1beta1.Seed, change func()) error {
	before := client.MergeFromWithOptions(seed.DeepCopy(), client.MergeFromWithOptimisticLock{})
	change()
	if err := r.garden.Patch(ctx, seed, before, client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("write Seed %s: %w", seed.Name, err)
	}
	r.written.Remember(seed)
	return nil
}

// write updates the status if it has changed. Conditions are merged by type, so that each writer sends only its own
// ones.
func (r *reconciler) write(ctx context.Context, seed *corev1beta1.Seed, status corev1beta1.SeedStatus) error {
	if equality.Semantic.DeepEqual(status, seed.Status) {
		return nil
	}
	last, before := seed.Status.LastOperation, latest.StatusPatch(seed.DeepCopy())
	seed.Status = status
	if err := r.garden.Status().Patch(ctx, seed, before, client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("write the status of Seed %s: %w", seed.Name, err)
	}
	flow.LogTransition(ctx, last, status.LastOperation)
	r.written.Remember(seed)
	return nil
}
