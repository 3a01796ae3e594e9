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

// WaitRollout is the name of the wait that a [Pacer] adds to a held plan.
const WaitRollout = "rollout-slot"

// countEvery is how often the ManagedResources of all owners are counted. In between, each pass updates only the count
// of its own owner, because a full count takes longer the more owners exist.
const countEvery = time.Minute

// Pacer admits owners one after the other. After a restart it derives its state from the live objects. Owners must have
// finalizers, so that none disappears between two passes.
type Pacer struct {
	Pacing Pacing
	Clock  clock.PassiveClock

	mu sync.Mutex
	// shares of all owners. A share comes either from the last full count or from the last pass of the owner.
	shares  shares
	counted time.Time
	// waiting are the owners that wait for a rollout slot, in FIFO order.
	waiting []waiting
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// waiting is an owner that waits for a rollout slot.
type waiting struct {
	owner Owner
	// bundles is the number of bundles that would roll out.
	bundles int
}

// Source is a source for the controller of a flow. It enqueues waiting owners as soon as a slot is free. Without it
// they retry after Pacing.Retry.
func (p *Pacer) Source() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.queue = queue
		return nil
	})
}

// hold returns a wait if the owner must wait for a slot, and the time of the next attempt. Deleted bundles are repaired
// immediately, even if that exceeds the budget. Live must include recent writes that the cache might not show yet.
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
			wait = &Wait{Name: WaitRollout, Reason: why, HoldsAll: true, Repairs: repairs(owner, live, decision)}
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

// sharesAround returns the share of an owner before and after the steps of a decision, and whether a step changes what
// is rolled out.
func sharesAround(owner Owner, live Live, decision Decision, version string) (before, after share, changes bool) {
	for _, mr := range live.owned(owner) {
		before.add(mr, version)
	}
	after = before
	for _, step := range decision.Steps {
		if step.Action == ActionRestore || step.Action == ActionRecord || step.Action == ActionRelease {
			continue
		}
		changes = true
		after = after.writing(live, step.Key)
	}
	return before, after, changes
}

// count counts the ManagedResources of a flow if a count is due. It keeps the share of an owner with a recent pass,
// because the list might not show its writes yet. At the first count it is unknown which rollouts were interrupted. An
// owner that might be in the middle of a rollout therefore counts as rolling until its next pass or the next count.
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
			if own.interrupted() {
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

// wake enqueues the owners for which slots are free. It reserves the slots, so that the next call does not enqueue
// other owners for the same slots.
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
