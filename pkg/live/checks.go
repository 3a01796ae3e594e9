package live

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// Checks are the health checks of one generation of a ManagedResource.
type Checks struct {
	// Origin is the origin annotation of its objects.
	Origin string
	// UID and Generation are those of the ManagedResource.
	UID        types.UID
	Generation int64
	Written    []resourcesv1alpha1.HealthCheck
}

// ChecksOf returns the checks of a ManagedResource whose objects have an origin.
func ChecksOf(origin string, mr *resourcesv1alpha1.ManagedResource) Checks {
	return Checks{Origin: origin, UID: mr.UID, Generation: mr.Generation, Written: mr.Spec.HealthChecks}
}

// adopted is what is remembered of the checks of a ManagedResource that has, or had, any.
type adopted struct {
	uid        types.UID
	generation int64
	since      int64
	err        error
}

// adoption keeps the checks of ManagedResources. The zero value is ready for use, and safe for concurrent use.
type adoption struct {
	mu       sync.Mutex
	byOrigin map[string]adopted
}

// AdoptChecks has objects examined by checks: what is read once it has returned was examined by them, or by those of a later
// generation. Checks of an earlier generation than the last one are passed over, as caches may be behind.
func (v *View) AdoptChecks(all ...Checks) {
	for _, gvk := range v.adopt(all) {
		v.ensure(gvk)
	}
}

// adopt returns the kinds whose watches it has ended, because their objects are to be examined in another way.
func (v *View) adopt(all []Checks) []schema.GroupVersionKind {
	if v.Examiner == nil {
		return nil
	}
	v.checks.mu.Lock()
	defer v.checks.mu.Unlock()
	changed := map[schema.GroupKind]bool{}
	for _, checks := range all {
		for _, gk := range v.adoptOne(checks) {
			changed[gk] = true
		}
	}
	// Still under the lock: who finds the checks adopted must not find a watch that does not know them.
	return v.endWatches(slices.Collect(maps.Keys(changed)))
}

func (v *View) adoptOne(checks Checks) []schema.GroupKind {
	before, known := v.checks.byOrigin[checks.Origin]
	if known && before.uid == checks.UID && checks.Generation < before.generation || !known && len(checks.Written) == 0 {
		return nil
	}
	kinds, err := v.Examiner.SetOwn(checks.Origin, checks.Written)
	after := adopted{uid: checks.UID, generation: checks.Generation, since: before.since, err: err}
	if !known || before.uid != checks.UID || len(kinds) > 0 || (err == nil) != (before.err == nil) {
		after.since = checks.Generation
	}
	if v.checks.byOrigin == nil {
		v.checks.byOrigin = map[string]adopted{}
	}
	v.checks.byOrigin[checks.Origin] = after
	return kinds
}

// ForgetChecks drops the checks of a ManagedResource that is gone. Nothing is examined again because of that: its objects are gone,
// too, or are not asked for.
func (v *View) ForgetChecks(origin string) {
	if v.Examiner == nil {
		return
	}
	v.checks.mu.Lock()
	defer v.checks.mu.Unlock()
	_, _ = v.Examiner.SetOwn(origin, nil)
	delete(v.checks.byOrigin, origin)
}

// AdoptedChecks returns the first generation of a ManagedResource that has the checks by which its objects are examined now, as far
// as this process knows; 0 if it never had any. The error says why they cannot be used; then the objects are examined without them.
func (v *View) AdoptedChecks(origin string) (since int64, err error) {
	v.checks.mu.Lock()
	defer v.checks.mu.Unlock()
	found := v.checks.byOrigin[origin]
	return found.since, found.err
}

// endWatches ends the watches of kinds, and returns which of the kinds were watched.
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
