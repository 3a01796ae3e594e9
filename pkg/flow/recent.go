package flow

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/requeue"
)

// behindFor is how long a cache may take to show a write. Watches can lag by many seconds on a busy machine. After that
// time the cache is trusted again, because the written object might have been deleted.
const behindFor = time.Minute

// recent are writes that the cache might not show yet. Without them, the next pass would repeat these writes.
type recent struct {
	mu      sync.Mutex
	byOwner map[types.UID]map[Key]written
}

// written is a ManagedResource as returned by the API server.
type written struct {
	mr    *resourcesv1alpha1.ManagedResource
	until time.Time
}

// record stores a write for an owner.
func (r *recent) record(owner Owner, mr *resourcesv1alpha1.ManagedResource, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expire(now)
	if r.byOwner == nil {
		r.byOwner = map[types.UID]map[Key]written{}
	}
	if r.byOwner[owner.UID] == nil {
		r.byOwner[owner.UID] = map[Key]written{}
	}
	r.byOwner[owner.UID][keyOf(mr)] = written{mr, now.Add(behindFor)}
}

// complete adds writes that the caches do not show yet to live. It returns when to check again, zero if the caches are
// up to date. Secrets have their own cache, which can lag behind the cache of ManagedResources.
func (r *recent) complete(owner Owner, live Live, now time.Time) (again time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expire(now)
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

// forget drops the writes for an owner.
func (r *recent) forget(owner Owner, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byOwner, owner.UID)
	r.expire(now)
}

// expire drops the writes of all owners that no longer override the cache. Without it, those of an owner whose plan is not
// emitted again, because it was deleted or moved to another seed, would stay in memory. The caller holds the lock.
func (r *recent) expire(now time.Time) {
	for owner, all := range r.byOwner {
		maps.DeleteFunc(all, func(_ Key, last written) bool { return !now.Before(last.until) })
		if len(all) == 0 {
			delete(r.byOwner, owner)
		}
	}
}

// behind reports whether a cache shows an older version of a ManagedResource than the written one.
func behind(cached, last *resourcesv1alpha1.ManagedResource) bool {
	if cached == nil {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(cached.ResourceVersion, last.ResourceVersion)
	return err == nil && order < 0
}
