package flow

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/requeue"
)

// behindFor is how long a cache may take to show what was written: on a busy machine watches are behind by many seconds. After that it is
// believed again: what was written may be gone.
const behindFor = time.Minute

// recent is what was written and may not be in a cache yet. Without it the next pass would write the same again.
type recent struct {
	mu      sync.Mutex
	byOwner map[types.UID]map[Key]written
}

// written is a ManagedResource as the API server has answered.
type written struct {
	mr    *resourcesv1alpha1.ManagedResource
	until time.Time
}

// record remembers what was written for an owner.
func (r *recent) record(owner Owner, mr *resourcesv1alpha1.ManagedResource, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byOwner == nil {
		r.byOwner = map[types.UID]map[Key]written{}
	}
	if r.byOwner[owner.UID] == nil {
		r.byOwner[owner.UID] = map[Key]written{}
	}
	r.byOwner[owner.UID][keyOf(mr)] = written{mr, now.Add(behindFor)}
}

// complete adds what the caches do not show yet to what lives, and returns until when it has to be looked at again; zero if the caches are up
// to date. Secrets have a cache of their own, which may be behind the one of ManagedResources.
func (r *recent) complete(owner Owner, live Live, now time.Time) (again time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.byOwner[owner.UID]
	for key, last := range all {
		isBehind := behind(live.ManagedResources[key], last.mr)
		if !now.Before(last.until) || !isBehind && len(live.missing(last.mr)) == 0 {
			delete(all, key)
			continue
		}
		if isBehind {
			live.ManagedResources[key] = last.mr
		}
		for _, reference := range last.mr.Spec.SecretRefs {
			live.Secrets[Key{Namespace: key.Namespace, Name: reference.Name}] = true
		}
		again = requeue.Earlier(again, last.until)
	}
	if len(all) == 0 {
		delete(r.byOwner, owner.UID)
	}
	return again
}

// behind reports whether a cache shows an older state of a ManagedResource than the one that was written.
func behind(cached, last *resourcesv1alpha1.ManagedResource) bool {
	if cached == nil {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(cached.ResourceVersion, last.ResourceVersion)
	return err == nil && order < 0
}
