package flow

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// Pacing limits how fast changes of the program, and of what operators declare for many owners, are rolled out over the
// owners of a flow. Changes by users are not delayed.
type Pacing struct {
	// Budget is how many ManagedResources of the flow may roll out at the same time.
	Budget int
	// Nodes is how many owners may have nodes that roll out at the same time. They do not use the other budget, because a node
	// that cannot be drained takes hours.
	Nodes int
	// MaxFailed is how many owners may fail with the current version before the rollout stops.
	MaxFailed int
	// Retry is how long a held owner waits before it requests a slot again, unless [Pacer.Source] enqueues it earlier.
	Retry time.Duration
}

// Fleet is the rollout state of all ManagedResources of a flow.
type Fleet struct {
	// Rolling counts the ManagedResources that are not completely rolled out, except those that change nodes.
	Rolling int
	// Nodes counts the owners whose nodes are not completely rolled out.
	Nodes int
	// Failed counts the owners that were written by the current version and fail.
	Failed int
}

// Change is what a change of an owner would roll out.
type Change struct {
	// Bundles is the number of its ManagedResources that would roll out, and Rolling of those that already do.
	Bundles, Rolling int
	// Nodes is set if its nodes would roll out, and NodesRoll if they already do.
	Nodes, NodesRoll bool
}

// adds reports whether the change needs slots for bundles, and a slot for nodes, that the owner does not use yet.
func (c Change) adds() (bundles, nodes bool) { return c.Bundles > c.Rolling, c.Nodes && !c.NodesRoll }

// Admit decides whether an owner may be changed now if only the code has changed. Others are the other owners. A change
// that adds nothing to what rolls out is admitted although the budget is used, because the version that repairs failing owners
// must not wait for the slots that they use. If the owner may not be changed, Admit returns a stable reason and the time of the
// next attempt. It is pure.
func (p Pacing) Admit(change Change, window *Window, others Fleet, now time.Time) (why string, next time.Time) {
	bundles, nodes := p.lacks(change, others)
	switch {
	case p.stops(others):
		why = fmt.Sprintf("at least %d owners fail with this version of the program, which stops its rollout", max(p.MaxFailed, 1))
	case window != nil && !window.Open:
		return "only the program or the declaration of operators has changed, and the maintenance window is closed", window.Opens
	case bundles:
		why = fmt.Sprintf("only the program or the declaration of operators has changed, and others are rolling out: at most %d ManagedResources at a time", p.Budget)
	case nodes:
		why = fmt.Sprintf("only the program or the declaration of operators has changed, and nodes of others are rolling out: of at most %d owners at a time", max(p.Nodes, 1))
	default:
		return "", time.Time{}
	}
	return why, now.Add(p.Retry)
}

// lacks reports for which slots a change has to wait.
func (p Pacing) lacks(change Change, others Fleet) (bundles, nodes bool) {
	bundles, nodes = change.adds()
	return bundles && others.Rolling > 0 && others.Rolling+change.Bundles > p.Budget, nodes && others.Nodes >= max(p.Nodes, 1)
}

// stops reports whether failures stop the rollout.
func (p Pacing) stops(others Fleet) bool { return others.Failed > 0 && others.Failed >= p.MaxFailed }

// FleetOf computes the rollout state from all ManagedResources of a flow.
func FleetOf(all []resourcesv1alpha1.ManagedResource, version string) Fleet {
	return sharesOf(all, version, nil).others("", target{to: version}, time.Time{}, false)
}

// target is a change of an owner from one version of the program to another.
type target struct{ from, to string }

// concerns reports whether an owner that fails with a version counts as a failure of the change. After a change of the
// program itself, all failures with the new program count. Otherwise only those with the same declaration of operators
// do.
func (t target) concerns(failedWith string) bool {
	if programOf(t.from) != programOf(t.to) {
		return programOf(failedWith) == programOf(t.to)
	}
	return failedWith == t.to
}

// share is the contribution of one owner to the fleet.
type share struct {
	// rolling counts its ManagedResources that are not completely rolled out, including those that are about to be
	// written.
	rolling int
	// failingSince is when one of its ManagedResources began to fail; zero if none does or if that is not known.
	failingSince time.Time
	// failedWith are the versions of the program that wrote those that fail.
	failedWith []string
	// seen is when the flow last planned the owner, zero if it has not.
	seen time.Time
	// granted is set if the owner has been woken to take a slot.
	granted bool
	// current and older count its rolled-out ManagedResources that were written by the current version of the program and
	// by other versions.
	current, older int
	nodes          nodesShare
}

// add counts a ManagedResource. OfNodes is set if it changes nodes.
func (s *share) add(mr *resourcesv1alpha1.ManagedResource, version string, ofNodes bool) {
	written := versionIn(mr.Annotations)
	current := programOf(written) == programOf(version)
	if ofNodes && !slices.Contains(s.nodes.writtenBy, written) {
		s.nodes.writtenBy = append(s.nodes.writtenBy, written)
	}
	switch {
	case notRolledOut(mr) != "" && ofNodes:
		s.nodes.rolling = true
	case notRolledOut(mr) != "":
		s.rolling++
	case current:
		s.current++
	default:
		s.older++
	}
	if failing(mr) == "" {
		return
	}
	if !slices.Contains(s.failedWith, written) {
		s.failedWith = append(s.failedWith, written)
	}
	if since := failingSince(mr); s.failingSince.IsZero() || !since.IsZero() && since.Before(s.failingSince) {
		s.failingSince = since
	}
}

// writing returns the share plus the bundles that are about to be written.
func (s share) writing(live Live, ofNodes func(Key) bool, bundles ...Key) share {
	for _, key := range bundles {
		if is(ofNodes, key) {
			s.nodes.rolling = true
		} else if mr := live.ManagedResources[key]; mr == nil || notRolledOut(mr) == "" {
			s.rolling++
		}
	}
	return s
}

// interrupted reports whether the rollout of the current version may have started without being completed.
func (s share) interrupted() bool {
	return s.older > 0 && (s.current > 0 || s.rolling > 0 || s.nodes.rolling)
}

// shares are the shares of all owners of a flow.
type shares map[types.UID]share

func sharesOf(all []resourcesv1alpha1.ManagedResource, version string, ofNodes func(Key) bool) shares {
	found := shares{}
	for i := range all {
		owner := types.UID(all[i].Labels[LabelOwner])
		own := found[owner]
		own.add(&all[i], version, is(ofNodes, keyOf(&all[i])))
		found[owner] = own
	}
	return found
}

// stuckAfter is how long an owner fails until its bundles no longer count as rolling out. Otherwise a few broken owners
// would use the budget forever, so that not even the version that repairs them could be rolled out.
const stuckAfter = 10 * time.Minute

// isStuck reports whether an owner fails for so long that nothing is rolled out any more.
func (s share) isStuck(now time.Time) bool {
	return !s.failingSince.IsZero() && now.Sub(s.failingSince) >= stuckAfter
}

// others returns the sum of the shares of all owners except one, for a change of that owner. Unknown nodes roll out if starting
// is set.
func (s shares) others(owner types.UID, change target, now time.Time, starting bool) Fleet {
	var sum Fleet
	for uid, own := range s {
		if uid == owner {
			continue
		}
		if !own.isStuck(now) {
			sum.Rolling += own.rolling
			if own.nodes.roll(now, starting) {
				sum.Nodes++
			}
		}
		if slices.ContainsFunc(own.failedWith, change.concerns) || own.nodes.fail(now) && slices.ContainsFunc(own.nodes.writtenBy, change.concerns) {
			sum.Failed++
		}
	}
	return sum
}
