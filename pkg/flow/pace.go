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
	// MaxFailed is how many owners may fail with the current version before the rollout stops.
	MaxFailed int
	// Retry is how long a held owner waits before it requests a slot again, unless [Pacer.Source] enqueues it earlier.
	Retry time.Duration
}

// Fleet is the rollout state of all ManagedResources of a flow.
type Fleet struct {
	// Rolling counts the ManagedResources that are not completely rolled out.
	Rolling int
	// Failed counts the owners that were written by the current version and fail.
	Failed int
}

// Admit decides whether an owner may be changed now if only the code has changed. bundles is the number of its bundles
// that would roll out, in addition to those of the other owners; rolling is the number of those that already do. A change
// that adds none is admitted although the budget is used, because the version that repairs failing owners must not wait for
// the slots that they use. If the owner may not be changed, Admit returns a stable reason and the time of the next attempt.
// It is pure.
func (p Pacing) Admit(bundles, rolling int, window *Window, others Fleet, now time.Time) (why string, next time.Time) {
	switch {
	case p.stops(others):
		why = fmt.Sprintf("at least %d owners fail with this version of the program, which stops its rollout", max(p.MaxFailed, 1))
		return why, now.Add(p.Retry)
	case window != nil && !window.Open:
		return "only the program or the declaration of operators has changed, and the maintenance window is closed", window.Opens
	case bundles > rolling && others.Rolling > 0 && others.Rolling+bundles > p.Budget:
		why = fmt.Sprintf("only the program or the declaration of operators has changed, and others are rolling out: at most %d ManagedResources at a time", p.Budget)
		return why, now.Add(p.Retry)
	}
	return "", time.Time{}
}

// stops reports whether failures stop the rollout.
func (p Pacing) stops(others Fleet) bool { return others.Failed > 0 && others.Failed >= p.MaxFailed }

// FleetOf computes the rollout state from all ManagedResources of a flow.
func FleetOf(all []resourcesv1alpha1.ManagedResource, version string) Fleet {
	return sharesOf(all, version).others("", target{to: version}, time.Time{})
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
}

// add counts a ManagedResource.
func (s *share) add(mr *resourcesv1alpha1.ManagedResource, version string) {
	written := versionIn(mr.Annotations)
	current := programOf(written) == programOf(version)
	switch {
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
func (s share) writing(live Live, bundles ...Key) share {
	for _, key := range bundles {
		if mr := live.ManagedResources[key]; mr == nil || notRolledOut(mr) == "" {
			s.rolling++
		}
	}
	return s
}

// interrupted reports whether the rollout of the current version may have started without being completed.
func (s share) interrupted() bool { return s.older > 0 && (s.current > 0 || s.rolling > 0) }

// shares are the shares of all owners of a flow.
type shares map[types.UID]share

func sharesOf(all []resourcesv1alpha1.ManagedResource, version string) shares {
	found := shares{}
	for i := range all {
		owner := types.UID(all[i].Labels[LabelOwner])
		own := found[owner]
		own.add(&all[i], version)
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

// others returns the sum of the shares of all owners except one, for a change of that owner.
func (s shares) others(owner types.UID, change target, now time.Time) Fleet {
	var sum Fleet
	for uid, own := range s {
		if uid == owner {
			continue
		}
		if !own.isStuck(now) {
			sum.Rolling += own.rolling
		}
		if slices.ContainsFunc(own.failedWith, change.concerns) {
			sum.Failed++
		}
	}
	return sum
}
