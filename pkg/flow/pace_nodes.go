package flow

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// nodesOverdue is how long nodes may need for a configuration before their owner counts as failing. Bundles that only contain
	// what nodes read are rolled out as soon as they are applied: without a limit, no failure would stop the rollout of a
	// configuration that no node can apply.
	nodesOverdue = time.Hour
	// nodesSeenAfter is how long it takes at most until the watch of nodes shows that a bundle was applied.
	nodesSeenAfter = 10 * time.Second
	// nodesKnownAfter is how long after its start the program may not know the nodes of all owners.
	nodesKnownAfter = 2 * time.Minute
)

// Nodes is the state of the nodes of an owner.
type Nodes struct {
	// Rolling is set while healthy nodes have not applied their current configuration.
	Rolling bool
	// Failing is set while nodes are not ready since they have applied it.
	Failing bool
}

// nodesShare is the contribution of the nodes of one owner to the fleet.
type nodesShare struct {
	// rolling is set if a ManagedResource that changes nodes is not rolled out, or about to be written. written is when that
	// was last so.
	rolling bool
	written time.Time
	// writtenBy are the versions of the program that wrote the ManagedResources that change nodes.
	writtenBy []string
	// observed is nil if the nodes are not known. since is when they began to roll out.
	observed *Nodes
	since    time.Time
}

// roll reports whether the nodes are rolling out.
func (n nodesShare) roll(now time.Time, starting bool) bool {
	switch {
	case n.rolling || !n.written.IsZero() && now.Sub(n.written) < nodesSeenAfter:
		return true
	case n.observed == nil:
		return starting && len(n.writtenBy) > 0
	}
	return n.observed.Rolling && now.Sub(n.since) < nodesOverdue
}

// fail reports whether nodes fail with their current configuration.
func (n nodesShare) fail(now time.Time) bool {
	return n.observed != nil && (n.observed.Failing || n.observed.Rolling && now.Sub(n.since) >= nodesOverdue)
}

// after returns the share of a later look at the ManagedResources, with what is only known from observations.
func (n nodesShare) after(before nodesShare, now time.Time) nodesShare {
	n.observed, n.since, n.written = before.observed, before.since, before.written
	if n.rolling {
		n.written = now
	}
	return n
}

// ObserveNodes records the state of the nodes of an owner. It enqueues the owners that wait, if slots have become free.
func (p *Pacer) ObserveNodes(owner types.UID, nodes Nodes) {
	p.mu.Lock()
	defer p.mu.Unlock()
	own := p.shares[owner]
	if own.nodes.observed != nil && *own.nodes.observed == nodes {
		return
	}
	if nodes.Rolling && (own.nodes.observed == nil || !own.nodes.observed.Rolling) {
		own.nodes.since = p.Clock.Now()
	}
	own.nodes.observed = &nodes
	if p.shares == nil {
		p.shares = shares{}
	}
	p.shares[owner] = own
	p.wake()
}

// is reports whether a bundle is one of those that change nodes. A flow without nodes has none.
func is(ofNodes func(Key) bool, key Key) bool { return ofNodes != nil && ofNodes(key) }
