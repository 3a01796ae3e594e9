package flow

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// Pacing says how fast changes of the code are rolled out over the owners of a flow. What users change is not held back.
type Pacing struct {
	// Budget is how many ManagedResources of the flow may be rolling out at a time.
	Budget int
	// MaxFailed is how many owners may fail with the present version before the rest is held.
	MaxFailed int
	// Retry is after how long an owner that is held asks again for a slot, if nothing brings it back before: see [Pacer.Source].
	Retry time.Duration
}

// Fleet is the state of ManagedResources of a flow.
type Fleet struct {
	// Rolling counts those that are not rolled out.
	Rolling int
	// Failed counts those owners, written by the present version, that fail.
	Failed int
}

// Admit decides whether an owner may change now that only the code has changed. It would have a number of bundles that are rolling out,
// beside those of the other owners. If it may not, the result is why, in words that
// stay the same while that lasts, and when to ask again. It is pure.
func (p Pacing) Admit(bundles int, window *Window, others Fleet, now time.Time) (why string, next time.Time) {
	switch {
	case others.Failed > 0 && others.Failed >= p.MaxFailed:
		return fmt.Sprintf("at least %d owners fail with this version of the program, which stops its rollout", max(p.MaxFailed, 1)), now.Add(p.Retry)
	case window != nil && !window.Open:
		return "only the program has changed, and the maintenance window is closed", window.Opens
	case others.Rolling > 0 && others.Rolling+bundles > p.Budget:
		return fmt.Sprintf("only the program has changed, and others are rolling out: at most %d ManagedResources at a time", p.Budget), now.Add(p.Retry)
	}
	return "", time.Time{}
}

// FleetOf counts over the ManagedResources of a flow.
func FleetOf(all []resourcesv1alpha1.ManagedResource, version string) Fleet {
	return sharesOf(all, version).fleet()
}

// share is what one owner contributes to a fleet.
type share struct {
	// rolling counts its ManagedResources that are not rolled out, with those that it is about to write.
	rolling int
	// failed is set if it fails with the present version of the program.
	failed bool
	// seen is when the flow last made a plan for it; zero if it has not.
	seen time.Time
	// present and older count its settled ManagedResources that the present version of the program has written, and the others.
	present, older int
}

// add counts a ManagedResource.
func (s *share) add(mr *resourcesv1alpha1.ManagedResource, version string) {
	present := mr.Annotations[AnnotationVersion] == version
	switch {
	case notRolledOut(mr) != "":
		s.rolling++
	case present:
		s.present++
	default:
		s.older++
	}
	s.failed = s.failed || present && failing(mr) != ""
}

// writing returns the share with bundles that are about to be written.
func (s share) writing(live Live, bundles ...Key) share {
	for _, key := range bundles {
		if mr := live.ManagedResources[key]; mr == nil || notRolledOut(mr) == "" {
			s.rolling++
		}
	}
	return s
}

// begun reports whether the rollout of the present version may have begun without having come to an end.
func (s share) begun() bool { return s.older > 0 && (s.present > 0 || s.rolling > 0) }

// shares are those of all owners of a flow.
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

// fleet returns the sum of all shares.
func (s shares) fleet() Fleet {
	var sum Fleet
	for _, own := range s {
		sum.Rolling += own.rolling
		if own.failed {
			sum.Failed++
		}
	}
	return sum
}

// without returns the fleet without one of its owners.
func (f Fleet) without(own share) Fleet {
	f.Rolling -= own.rolling
	if own.failed {
		f.Failed--
	}
	return f
}
