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
	// OfNodes reports whether a bundle changes nodes: see [Pacing.Nodes]; nil if no bundle does. [Pacer.ObserveNodes] reports the
	// nodes.
	OfNodes func(Key) bool

	mu sync.Mutex
	// shares of all owners. A share comes either from the last full count or from the last pass of the owner. started is the
	// time of the first count.
	shares           shares
	started, counted time.Time
	// waiting are the owners that wait for a rollout slot, in FIFO order.
	waiting []waiting
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// waiting is an owner that waits for a rollout slot.
type waiting struct {
	owner Owner
	Change
	target target
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
	before, after, changes := p.sharesAround(owner, live, decision, version)
	last := lastEmission(live.owned(owner))
	request := waiting{owner: owner, target: target{from: last.version, to: plan.version(version)}, Change: Change{
		Bundles: after.rolling, Rolling: before.rolling, Nodes: after.nodes.rolling, NodesRoll: before.nodes.roll(now, false),
	}}
	why, next := "", time.Time{}
	if changes && !plan.Deleting && !plan.AtOnce && last.codeOnly(plan, version) {
		why, next = p.admit(request, plan.Window, now)
	}
	p.settle(request, why != "" && (plan.Window == nil || plan.Window.Open))
	var wait *Wait
	if why != "" {
		wait = &Wait{Name: WaitRollout, Reason: why, HoldsAll: true, Repairs: repairs(owner, live, decision)}
		after = before.writing(live, p.OfNodes, wait.Repairs...)
	}
	after.seen, after.nodes = now, after.nodes.after(p.shares[owner.UID].nodes, now)
	p.shares[owner.UID] = after
	p.wake()
	return wait, next, nil
}

// admit returns why an owner must wait: because of the others, or because an owner before it waits for slots.
func (p *Pacer) admit(request waiting, window *Window, now time.Time) (why string, next time.Time) {
	own := request.owner.UID
	why, next = p.Pacing.Admit(request.Change, window, p.others(request, now), now)
	bundles, nodes := request.adds()
	if why != "" || p.shares[own].granted || !bundles && !nodes {
		return why, next
	}
	for _, other := range p.waiting {
		if other.owner.UID == own {
			break
		}
		if p.precedes(other, request, now) {
			return "only the program or the declaration of operators has changed, and others wait for their rollout before", now.Add(p.Pacing.Retry)
		}
	}
	return "", time.Time{}
}

// precedes reports whether an owner that waits gets slots before another one: it waits for slots that both need. If it waits because
// others failed, it does not block those that wait for another change.
func (p *Pacer) precedes(w, request waiting, now time.Time) bool {
	others := p.others(w, now)
	if p.Pacing.stops(others) {
		return false
	}
	bundles, nodes := request.adds()
	lacksBundles, lacksNodes := p.Pacing.lacks(w.Change, others)
	return lacksBundles && bundles || lacksNodes && nodes || !lacksBundles && !lacksNodes
}

// others returns the sum of the shares of the other owners.
func (p *Pacer) others(w waiting, now time.Time) Fleet {
	return p.shares.others(w.owner.UID, w.target, now, p.isStarting(now))
}

// isStarting reports whether the nodes of some owners may not be known yet.
func (p *Pacer) isStarting(now time.Time) bool { return now.Sub(p.started) < nodesKnownAfter }

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
func (p *Pacer) sharesAround(owner Owner, live Live, decision Decision, version string) (before, after share, changes bool) {
	for _, mr := range live.owned(owner) {
		before.add(mr, version, is(p.OfNodes, keyOf(mr)))
	}
	before.nodes = before.nodes.after(p.shares[owner.UID].nodes, p.Clock.Now())
	after = before
	for _, step := range decision.Steps {
		if step.Action == ActionRestore || step.Action == ActionRecord || step.Action == ActionRelease {
			continue
		}
		changes = true
		after = after.writing(live, p.OfNodes, step.Key)
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
	found := sharesOf(all.Items, version, p.OfNodes)
	if p.counted.IsZero() {
		p.started = now
		for owner, own := range found {
			if own.interrupted() {
				own.rolling += own.older
				own.nodes.rolling = len(own.nodes.writtenBy) > 0
				found[owner] = own
			}
		}
	}
	for owner, own := range p.shares {
		counted, exists := found[owner]
		counted.nodes = counted.nodes.after(own.nodes, now)
		counted.granted = own.granted // its slot is free again, but its place is not lost
		switch {
		case now.Sub(own.seen) < countEvery:
			found[owner] = own
		case exists || own.granted:
			found[owner] = counted
		}
	}
	p.shares, p.counted = found, now
	return nil
}

// wake enqueues the owners for which slots are free, in the order in which they wait. It reserves the slots until the next
// count, so that the next call does not enqueue other owners for the same slots. Owners that wait for one kind of slots do not
// block those that need only the other kind.
func (p *Pacer) wake() {
	if p.queue == nil {
		return
	}
	now := p.Clock.Now()
	var left []waiting
	var fullOfBundles, fullOfNodes bool
	for _, next := range p.waiting {
		bundles, nodes := next.adds()
		if fullOfBundles && bundles || fullOfNodes && nodes {
			left = append(left, next)
			continue
		}
		others := p.others(next, now)
		lacksBundles, lacksNodes := p.Pacing.lacks(next.Change, others)
		if p.Pacing.stops(others) || lacksBundles || lacksNodes {
			if !p.Pacing.stops(others) {
				fullOfBundles, fullOfNodes = fullOfBundles || lacksBundles, fullOfNodes || lacksNodes
			}
			left = append(left, next)
			continue
		}
		own := p.shares[next.owner.UID]
		own.rolling, own.granted, own.seen = next.Bundles, true, now
		own.nodes.rolling = own.nodes.rolling || next.Nodes
		p.shares[next.owner.UID] = own
		p.queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: next.owner.Namespace, Name: next.owner.Name}})
	}
	p.waiting = left
}
