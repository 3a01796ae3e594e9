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
	// bundles is the number of bundles that would roll out with the change, and rolling of those that roll out without it.
	bundles, rolling int
	change           target
}

// adds reports whether the change needs slots that the owner does not use yet.
func (w waiting) adds() bool { return w.bundles > w.rolling }

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

// hold returns a wait if the owner must wait for a slot, and the time of the next attempt. An owner that waits keeps its
// place until it gets a slot or needs none. Deleted bundles are repaired immediately, even if that exceeds the budget.
// Live must include recent writes that the cache might not show yet.
func (p *Pacer) hold(ctx context.Context, reader client.Reader, owner Owner, plan Plan, live Live, decision Decision, version string,
) (*Wait, time.Time, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.Clock.Now()
	if err := p.count(ctx, reader, owner.Flow, version, now); err != nil {
		return nil, time.Time{}, err
	}
	before, after, changes := sharesAround(owner, live, decision, version)
	last := lastEmission(live.owned(owner))
	request := waiting{owner: owner, bundles: after.rolling, rolling: before.rolling, change: target{from: last.version, to: plan.version(version)}}
	why, next := "", time.Time{}
	if changes && !plan.Deleting && !plan.AtOnce && last.codeOnly(plan, version) {
		why, next = p.admit(request, plan.Window, now)
	}
	p.settle(request, why != "" && (plan.Window == nil || plan.Window.Open))
	var wait *Wait
	if why != "" {
		wait = &Wait{Name: WaitRollout, Reason: why, HoldsAll: true, Repairs: repairs(owner, live, decision)}
		after = before.writing(live, wait.Repairs...)
	}
	after.seen = now
	p.shares[owner.UID] = after
	p.wake()
	return wait, next, nil
}

// admit returns why an owner must wait: because of the others, or because an owner before it waits for slots.
func (p *Pacer) admit(request waiting, window *Window, now time.Time) (why string, next time.Time) {
	own := request.owner.UID
	why, next = p.Pacing.Admit(request.bundles, request.rolling, window, p.shares.others(own, request.change, now), now)
	if why != "" || p.shares[own].granted || !request.adds() {
		return why, next
	}
	for _, other := range p.waiting {
		if other.owner.UID == own {
			break
		}
		if !p.isStopped(other) {
			return "only the program or the declaration of operators has changed, and others wait for their rollout before", now.Add(p.Pacing.Retry)
		}
	}
	return "", time.Time{}
}

// isStopped reports whether an owner waits because others failed. It does not block those that wait for another change.
func (p *Pacer) isStopped(w waiting) bool {
	return p.Pacing.stops(p.shares.others(w.owner.UID, w.change, p.Clock.Now()))
}

// settle adds an owner to those that wait, or removes it. An owner that has a place keeps it. One that had been woken but
// could not take its slot is the first again.
func (p *Pacer) settle(request waiting, waits bool) {
	own := request.owner.UID
	at := slices.IndexFunc(p.waiting, func(w waiting) bool { return w.owner.UID == own })
	switch {
	case !waits && at >= 0:
		p.waiting = slices.Delete(p.waiting, at, at+1)
	case !waits:
	case at >= 0:
		p.waiting[at] = request
	case p.shares[own].granted:
		p.waiting = slices.Insert(p.waiting, 0, request)
	default:
		p.waiting = append(p.waiting, request)
	}
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
		counted := found[owner]
		switch {
		case now.Sub(own.seen) < countEvery:
			found[owner] = own
		case own.granted: // its slot is free again, but its place is not lost
			counted.granted = true
			found[owner] = counted
		}
	}
	p.shares, p.counted = found, now
	return nil
}

// wake enqueues the owners for which slots are free, in the order in which they wait. It reserves the slots until the next
// count, so that the next call does not enqueue other owners for the same slots.
func (p *Pacer) wake() {
	if p.queue == nil {
		return
	}
	var left []waiting
	full := false
	for _, next := range p.waiting {
		own := p.shares[next.owner.UID]
		if full && next.adds() || p.isStopped(next) {
			left = append(left, next)
			continue
		}
		if why, _ := p.Pacing.Admit(next.bundles, next.rolling, nil, p.shares.others(next.owner.UID, next.change, p.Clock.Now()), p.Clock.Now()); why != "" {
			full = true
			left = append(left, next)
			continue
		}
		own.rolling, own.granted, own.seen = next.bundles, true, p.Clock.Now()
		p.shares[next.owner.UID] = own
		p.queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: next.owner.Namespace, Name: next.owner.Name}})
	}
	p.waiting = left
}
