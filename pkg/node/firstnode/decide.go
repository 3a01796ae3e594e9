// Package firstnode lets one node of each worker pool apply a changed configuration before the others, so that a configuration with
// which nodes do not work reaches one node of the pool.
//
// It writes two annotations on the Secret with the configuration, which the node agents of the pool watch: the node that goes first,
// and, when that node has run with the configuration for a while, the checksum of the configuration.
package firstnode

import (
	"slices"
	"strings"
	"time"
)

const (
	// trial is how long the first node must be ready after it has applied the configuration. kube-controller-manager takes 50
	// seconds to notice that a kubelet is gone.
	trial = 90 * time.Second
	// allDown is how long no node must have been ready until all apply the configuration: it may be what repairs them.
	allDown = 5 * time.Minute
)

// pool is the state of the configuration of a pool.
type pool struct {
	// checksum is that of the configuration.
	checksum string
	// first is the first node with the checksum of the configuration for which it was chosen, and tried the checksum of the last
	// configuration that all nodes may apply; empty if the controller has not seen the pool yet.
	first, tried string
	// serial is set if the nodes are updated one after the other.
	serial bool
}

// node is the state of a node of the pool.
type node struct {
	name string
	// applied is the checksum of the applied configuration, empty for a new node. appliedAt is when it was applied; zero if the node does
	// not say so.
	applied   string
	appliedAt time.Time
	ready     bool
	// notReadySince is when a node became not ready.
	notReadySince time.Time
	// leaving is set if the node is about to be replaced.
	leaving bool
}

// decide returns what the annotations of the pool should be, and when to decide again; 0 until something changes. The nodes are sorted
// by name.
func (p pool) decide(nodes []node, now time.Time) (first, tried string, again time.Duration) {
	switch {
	case p.checksum == "" || p.serial || p.tried == p.checksum:
		return p.first, p.tried, 0
	case p.tried == "": // the nodes do not wait for each other yet, and may have begun
		return p.first, p.checksum, 0
	}
	down, until := areDown(nodes, now)
	if down {
		return p.first, p.checksum, 0
	}
	chosen, found := p.choose(nodes)
	if !found {
		return p.first, p.tried, until
	}
	first = chosen.name + "/" + p.checksum
	if chosen.applied != p.checksum || !chosen.ready {
		return first, p.tried, until
	}
	if left := trial - max(now.Sub(chosen.appliedAt), 0); left > 0 {
		return first, p.tried, left
	}
	return first, p.checksum, 0
}

// choose returns the first node: the one that was chosen before, if it is still there. Otherwise, it prefers a node that has the
// configuration already, and one on which an earlier configuration has failed, so that no healthy node is used. New nodes do not count,
// because they apply their configuration at once.
func (p pool) choose(nodes []node) (node, bool) {
	name, of, _ := strings.Cut(p.first, "/")
	for _, prefers := range []func(node) bool{
		func(n node) bool { return n.name == name && of == p.checksum },
		func(n node) bool { return n.applied == p.checksum },
		func(n node) bool { return n.name == name && of != p.tried && !n.ready },
		func(n node) bool { return n.ready },
	} {
		if i := slices.IndexFunc(nodes, func(n node) bool { return !n.leaving && n.applied != "" && prefers(n) }); i >= 0 {
			return nodes[i], true
		}
	}
	return node{}, false
}

// areDown reports whether no node has been ready for a while, or when that would be so. Without nodes, there is nothing to protect.
func areDown(nodes []node, now time.Time) (down bool, until time.Duration) {
	for _, each := range nodes {
		switch {
		case each.applied == "" || each.leaving:
		case each.ready:
			return false, 0
		default:
			until = max(until, allDown-now.Sub(each.notReadySince))
		}
	}
	return until <= 0, until
}
