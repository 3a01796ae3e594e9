package scheduler

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

// ledger counts the Shoots of each Seed, including those whose binding was sent, but not seen yet. It is safe for concurrent use.
type ledger struct {
	mu sync.Mutex
	// shoots are the known Shoots by UID. usage is the number of Shoots by Seed, which follows from them.
	shoots map[types.UID]*place
	usage  map[string]int
	// counted is the resourceVersion of the uncached count. What the cache shows of Shoots that were absent then is older.
	counted string
}

// place is where a Shoot is.
type place struct {
	version string
	// seeds are the Seeds in the specification and in the status. Both host a part of the Shoot.
	seeds []string
	// reserved is the Seed of a binding that was sent or is about to be sent. It is empty if there is none.
	reserved string
}

func newLedger() *ledger {
	return &ledger{shoots: map[types.UID]*place{}, usage: map[string]int{}}
}

// seedsOf returns the different Seeds of a Shoot in its specification and status.
func seedsOf(shoot *corev1beta1.Shoot) []string {
	var seeds []string
	for _, name := range []*string{shoot.Spec.SeedName, shoot.Status.SeedName} {
		if name != nil && *name != "" && (len(seeds) == 0 || seeds[0] != *name) {
			seeds = append(seeds, *name)
		}
	}
	return seeds
}

// older reports whether a resourceVersion is older than another one. Unknown versions are not.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// observe records a Shoot as a watch or a response showed it. It ignores Shoots that are older than what is known. It returns the Seeds that have one
// Shoot less now.
func (l *ledger) observe(shoot *corev1beta1.Shoot) (freed []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.shoots[shoot.UID]
	if known == nil && l.counted != "" && older(shoot.ResourceVersion, l.counted) || known != nil && older(shoot.ResourceVersion, known.version) {
		return nil
	}
	after := &place{version: shoot.ResourceVersion, seeds: seedsOf(shoot)}
	if known != nil && shoot.Spec.SeedName == nil {
		after.reserved = known.reserved // only its binding, a refusal or a live read ends a reservation
	}
	return l.replace(shoot.UID, after)
}

// forget removes a Shoot that does not exist any more. It returns the Seeds that have one Shoot less now.
func (l *ledger) forget(uid types.UID) (freed []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.replace(uid, nil)
}

// replace changes what is known about a Shoot, and returns the Seeds that have one Shoot less now.
func (l *ledger) replace(uid types.UID, after *place) (freed []string) {
	change := map[string]int{}
	for seed := range l.shoots[uid].all() {
		change[seed]--
	}
	for seed := range after.all() {
		change[seed]++
	}
	for seed, difference := range change {
		if l.usage[seed] += difference; l.usage[seed] == 0 {
			delete(l.usage, seed)
		}
		if difference < 0 {
			freed = append(freed, seed)
		}
	}
	if after == nil {
		delete(l.shoots, uid)
	} else {
		l.shoots[uid] = after
	}
	return freed
}

// all returns the set of Seeds on which a Shoot counts.
func (p *place) all() map[string]bool {
	seeds := map[string]bool{}
	if p == nil {
		return seeds
	}
	for _, seed := range p.seeds {
		seeds[seed] = true
	}
	if p.reserved != "" {
		seeds[p.reserved] = true
	}
	return seeds
}

// begin replaces everything that is known by an uncached list of all Shoots.
func (l *ledger) begin(version string, all []place, uids []types.UID) error {
	if _, err := resourceversion.CompareResourceVersion(version, version); err != nil {
		return fmt.Errorf("count the Shoots of each Seed: the API server returned a list without a usable resourceVersion: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.shoots
	l.shoots, l.usage, l.counted = map[types.UID]*place{}, map[string]int{}, version
	for i := range all {
		l.replace(uids[i], &all[i])
	}
	for uid, place := range before {
		if known := l.shoots[uid]; known == nil && !older(place.version, version) || known != nil && older(known.version, place.version) {
			l.replace(uid, place)
		}
	}
	return nil
}

// begun reports whether the uncached count is done.
func (l *ledger) begun() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counted != ""
}

// reserve decides for a Shoot without a Seed, and counts it on the chosen one from now on. If a binding was sent before and its result is not known,
// reserve returns the same Seed again. bound is set if the Shoot is known to have a Seed.
func (l *ledger) reserve(shoot *corev1beta1.Shoot, decide func(usage map[string]int) string) (seed string, bound bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.shoots[shoot.UID]
	if known == nil {
		known = &place{version: shoot.ResourceVersion}
	}
	if len(known.seeds) > 0 {
		return "", true
	}
	if known.reserved != "" {
		return known.reserved, false
	}
	if seed = decide(l.usage); seed != "" {
		l.replace(shoot.UID, &place{version: known.version, seeds: known.seeds, reserved: seed})
	}
	return seed, false
}

// reserved returns the Seed of a binding whose result is not known, or nothing.
func (l *ledger) reserved(uid types.UID) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.shoots[uid]; known != nil {
		return known.reserved
	}
	return ""
}

// release ends a reservation, because the API server refused the binding. It returns the Seeds that have one Shoot less now.
func (l *ledger) release(uid types.UID) (freed []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.shoots[uid]
	if known == nil {
		return nil
	}
	return l.replace(uid, &place{version: known.version, seeds: known.seeds})
}
