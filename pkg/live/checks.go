package live

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// Checks are the health checks of one generation of a ManagedResource.
type Checks struct {
	// Origin is the origin annotation of the objects.
	Origin string
	// UID and Generation are those of the ManagedResource, Written are the checks in its spec.
	UID        types.UID
	Generation int64
	Written    []resourcesv1alpha1.HealthCheck
}

// ChecksOf returns the checks of a ManagedResource with the given origin.
func ChecksOf(origin string, mr *resourcesv1alpha1.ManagedResource) Checks {
	return Checks{Origin: origin, UID: mr.UID, Generation: mr.Generation, Written: mr.Spec.HealthChecks}
}

// adopted is the state of the checks of a ManagedResource that has or had any.
type adopted struct {
	uid        types.UID
	generation int64
	since      int64
	err        error
	// renewed is closed when the objects were examined by the checks. It is nil if they already were.
	renewed chan struct{}
}

// adoption stores the adopted checks of ManagedResources. The zero value is empty. It is safe for concurrent use.
type adoption struct {
	mu       sync.Mutex
	byOrigin map[string]adopted
}

// AdoptChecks makes checks effective: after it returns, reads return objects that were examined by them or by those of
// a later generation. It ignores checks of an earlier generation than the last one, because caches may be outdated.
// Only objects whose checks have changed are read again, unless they are most objects of their kind, or only the
// metadata of their kind was watched.
func (v *View) AdoptChecks(ctx context.Context, all ...Checks) {
	if v.Examiner == nil {
		return
	}
	renewed := make(chan struct{})
	restarted, renewals := v.adopt(all, renewed)
	for _, gvk := range restarted {
		v.ensure(gvk)
	}
	for _, renewal := range renewals {
		v.renew(ctx, renewal)
	}
	v.endRenewal(all, renewed)
	for _, checks := range all {
		v.awaitRenewal(ctx, checks.Origin)
	}
}

// endRenewal ends the wait of all callers that wait for a renewal.
func (v *View) endRenewal(all []Checks, renewed chan struct{}) {
	v.checks.mu.Lock()
	defer v.checks.mu.Unlock()
	close(renewed)
	for _, checks := range all {
		if found := v.checks.byOrigin[checks.Origin]; found.renewed == renewed {
			found.renewed = nil
			v.checks.byOrigin[checks.Origin] = found
		}
	}
}

// adopt stores checks. It returns the kinds whose watches it has ended, and the objects that have to be read again,
// because they have to be examined differently. renewed is closed when this is done.
func (v *View) adopt(all []Checks, renewed chan struct{}) (restarted []schema.GroupVersionKind, renewals []renewal) {
	v.checks.mu.Lock()
	defer v.checks.mu.Unlock()
	changed := map[schema.GroupKind][]string{}
	for _, checks := range all {
		for _, gk := range v.adoptOne(checks, renewed) {
			changed[gk] = append(changed[gk], checks.Origin)
		}
	}
	var ended []schema.GroupKind
	// This happens under the lock: a caller that finds the checks adopted must not find a verdict of other checks.
	for gk, origins := range changed {
		switch found, few := v.outdated(gk, origins); {
		case !few:
			ended = append(ended, gk)
		case len(found.names) > 0:
			renewals = append(renewals, found)
		}
	}
	return v.endWatches(ended), renewals
}

// outdated clears the verdicts of the objects of a kind and of origins, and returns these objects. It returns false if
// the watch has to be restarted.
func (v *View) outdated(gk schema.GroupKind, origins []string) (_ renewal, few bool) {
	v.mu.Lock()
	w := v.watches[gk]
	v.mu.Unlock()
	if w == nil {
		return renewal{}, true // a new watch uses the current checks
	}
	if (w.store.observer.examiner == nil) != (examinerOf(v.Examiner, gk) == nil) {
		return renewal{}, false
	}
	names, few := w.store.clearVerdicts(origins)
	return renewal{w, names}, few
}

// awaitRenewal waits until the objects of an origin were examined by its checks, if another caller is adopting them.
func (v *View) awaitRenewal(ctx context.Context, origin string) {
	v.checks.mu.Lock()
	renewed := v.checks.byOrigin[origin].renewed
	v.checks.mu.Unlock()
	if renewed == nil {
		return
	}
	select {
	case <-renewed:
	case <-ctx.Done():
	}
}

// adoptOne stores the checks of one origin, and returns the kinds whose objects of this origin have to be examined
// again. renewed is closed when this is done.
func (v *View) adoptOne(checks Checks, renewed chan struct{}) []schema.GroupKind {
	before, known := v.checks.byOrigin[checks.Origin]
	if known && before.uid == checks.UID && checks.Generation < before.generation || !known && len(checks.Written) == 0 {
		return nil
	}
	kinds, err := v.Examiner.SetOwn(checks.Origin, checks.Written)
	after := adopted{uid: checks.UID, generation: checks.Generation, since: before.since, err: err, renewed: before.renewed}
	if !known || before.uid != checks.UID || len(kinds) > 0 || (err == nil) != (before.err == nil) {
		after.since = checks.Generation
	}
	if len(kinds) > 0 {
		after.renewed = renewed
	}
	if v.checks.byOrigin == nil {
		v.checks.byOrigin = map[string]adopted{}
	}
	v.checks.byOrigin[checks.Origin] = after
	return kinds
}

// ForgetChecks deletes the checks of a ManagedResource that no longer exists. No object is examined again, because its
// objects do not exist either, or are not read.
func (v *View) ForgetChecks(origin string) {
	if v.Examiner == nil {
		return
	}
	v.checks.mu.Lock()
	defer v.checks.mu.Unlock()
	v.Examiner.Forget(origin)
	delete(v.checks.byOrigin, origin)
}

// AdoptedChecks returns the first generation of a ManagedResource with the checks that are currently used for its
// objects, as far as this process knows. It is 0 if there were never any. If the checks cannot be used, it returns an
// error, and the objects are examined without them.
func (v *View) AdoptedChecks(origin string) (since int64, err error) {
	v.checks.mu.Lock()
	defer v.checks.mu.Unlock()
	found := v.checks.byOrigin[origin]
	return found.since, found.err
}

// endWatches ends the watches of kinds, and returns the kinds that were watched.
func (v *View) endWatches(kinds []schema.GroupKind) []schema.GroupVersionKind {
	v.mu.Lock()
	defer v.mu.Unlock()
	ended := map[schema.GroupKind]bool{}
	for _, gk := range kinds {
		if w, running := v.watches[gk]; running {
			w.cancel()
			delete(v.watches, gk)
			ended[gk] = true
		}
	}
	var gvks []schema.GroupVersionKind
	for _, handles := range v.uses {
		for _, handle := range handles {
			if gvk := handle.Value(); ended[gvk.GroupKind()] {
				delete(ended, gvk.GroupKind())
				gvks = append(gvks, gvk)
			}
		}
	}
	return gvks
}
