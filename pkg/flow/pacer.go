package flow

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// WaitRollout is the name of the wait with which a [Pacer] holds a plan.
const WaitRollout = "rollout-slot"

// countEvery is how often the ManagedResources of all owners are counted. In between each owner that is looked at brings its own count up to
// date: to count all of them each time would take longer the more owners there are.
const countEvery = time.Minute

// Pacer admits owners one after the other. After a restart all that it has to know is what lives. Owners have to have finalizers, so that
// none disappears between two passes.
type Pacer struct {
	Pacing Pacing
	Clock  clock.PassiveClock

	mu sync.Mutex
	// shares are those of all owners, some of them as they were counted, others as their last pass has found them.
	shares  shares
	counted time.Time
	// waiting are the owners that wait for a slot, in the order in which they get it.
	waiting []waiting
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// waiting is an owner that waits for a slot.
type waiting struct {
	owner Owner
	// bundles is how many would be rolling out.
	bundles int
}

// Source is a source of a flow's controller that brings owners back that wait for a slot, as soon as there is one. Without it they ask again
// after Pacing.Retry.
func (p *Pacer) Source() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.queue = queue
		return nil
	})
}

// hold returns a wait for an owner that has to wait for its slot, and when to ask again. What such an owner has lost is repaired at once, even if
// that exceeds the budget. Live has what was just written, also if the cache does not show it yet.
func (p *Pacer) hold(ctx context.Context, reader client.Reader, owner Owner, plan Plan, live Live, decision Decision, version string,
) (*Wait, time.Time, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.Clock.Now()
	if err := p.count(ctx, reader, owner.Flow, version, now); err != nil {
		return nil, time.Time{}, err
	}
	p.waiting = slices.DeleteFunc(p.waiting, func(w waiting) bool { return w.owner.UID == owner.UID })
	before, after, changes := sharesAround(owner, live, decision, version)
	var wait *Wait
	var next time.Time
	if changes && !plan.Deleting && !plan.AtOnce && lastEmission(live.owned(owner)).codeOnly(plan, version) {
		var why string
		if why, next = p.Pacing.Admit(after.rolling, plan.Window, p.shares.fleet().without(p.shares[owner.UID]), now); why != "" {
			wait = &Wait{Name: WaitRollout, Reason: why, HoldsAll: true, Repairs: lost(owner, live, decision)}
			if plan.Window == nil || plan.Window.Open {
				p.waiting = append(p.waiting, waiting{owner, after.rolling})
			}
			after = before.writing(live, wait.Repairs...)
		}
	}
	after.seen = now
	p.shares[owner.UID] = after
	p.wake()
	return wait, next, nil
}

// sharesAround returns the share of an owner as it is and as it would be with the steps of a decision, and whether one of these changes what
// is rolled out.
func sharesAround(owner Owner, live Live, decision Decision, version string) (before, after share, changes bool) {
	for _, mr := range live.owned(owner) {
		before.add(mr, version)
	}
	after = before
	for _, step := range decision.Steps {
		if step.Action == ActionRestore || step.Action == ActionRecord {
			continue
		}
		changes = true
		after = after.writing(live, step.Key)
	}
	return before, after, changes
}

// count counts over the ManagedResources of a flow, if that is due. The count of an owner that was looked at since the last time stays: what
// is read here may be behind what it wrote. At the first time it is not known whose rollouts were interrupted: an owner whose rollout may
// have been counts as if it went on, until it is looked at or the next count.
func (p *Pacer) count(ctx context.Context, reader client.Reader, flow, version string, now time.Time) error {
	if !p.counted.IsZero() && now.Sub(p.counted) < countEvery {
		return nil
	}
	var all resourcesv1alpha1.ManagedResourceList
	if err := reader.List(ctx, &all, client.MatchingLabels{LabelFlow: flow}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the ManagedResources of %s: %w", flow, err)
	}
	found := sharesOf(all.Items, version)
	if p.counted.IsZero() {
		for owner, own := range found {
			if own.begun() {
				own.rolling += own.older
				found[owner] = own
			}
		}
	}
	for owner, own := range p.shares {
		if now.Sub(own.seen) < countEvery {
			found[owner] = own
		}
	}
	p.shares, p.counted = found, now
	return nil
}

// wake brings back the owners for which there are slots now. They are reserved, so that the next call does not wake others for the same slots.
func (p *Pacer) wake() {
	for p.queue != nil && len(p.waiting) > 0 {
		first := p.waiting[0]
		own := p.shares[first.owner.UID]
		if why, _ := p.Pacing.Admit(first.bundles, nil, p.shares.fleet().without(own), p.Clock.Now()); why != "" {
			return
		}
		own.rolling = first.bundles
		p.shares[first.owner.UID] = own
		p.waiting = slices.Delete(p.waiting, 0, 1)
		p.queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: first.owner.Namespace, Name: first.owner.Name}})
	}
}
