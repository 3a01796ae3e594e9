package controller

import (
	"sync"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// writesMemory is how long a write counts that the watch has not shown.
const writesMemory = time.Minute

// writes remembers policies as they were after they had been written until the watch shows them, so that nothing is written
// twice. It is safe for concurrent use.
type writes struct {
	mu       sync.Mutex
	byPolicy map[types.NamespacedName]written
	// byService has the same by Service.
	byService map[types.NamespacedName]map[types.NamespacedName]bool
	// latest are the youngest resourceVersions that the watches have shown: what is older and not in the cache is gone again.
	latest map[string]string
	// apart says that each namespace has a watch of its own.
	apart bool
}

type written struct {
	policy *networkingv1.NetworkPolicy
	at     time.Time
}

func newWrites(apart bool) *writes {
	return &writes{
		byPolicy: map[types.NamespacedName]written{}, byService: map[types.NamespacedName]map[types.NamespacedName]bool{},
		latest: map[string]string{}, apart: apart,
	}
}

// record keeps a reduced policy that was written, unless it is outdated: the answer to a write may come after the watch has shown it, or
// that it was deleted since, or after that to a later write for another Service. Shown returns what the cache has of the policy, or nil. It is asked under the lock, which
// seen needs too, so that no event is missed in between.
func (w *writes) record(policy *networkingv1.NetworkPolicy, now time.Time, shown func() *networkingv1.NetworkPolicy) {
	w.mu.Lock()
	defer w.mu.Unlock()
	present := shown()
	for _, other := range []*networkingv1.NetworkPolicy{w.byPolicy[keyOf(policy)].policy, present} {
		if other != nil && !isOlder(other, policy) {
			return
		}
	}
	if latest, known := w.latest[w.scope(policy)]; present == nil && known && !isOlderVersion(latest, policy.ResourceVersion) {
		return
	}
	w.forget(keyOf(policy))
	w.byPolicy[keyOf(policy)] = written{policy: policy, at: now}
	service := serviceOf(policy)
	if w.byService[service] == nil {
		w.byService[service] = map[types.NamespacedName]bool{}
	}
	w.byService[service][keyOf(policy)] = true
}

// scope names the watch that shows a policy.
func (w *writes) scope(policy *networkingv1.NetworkPolicy) string {
	if w.apart {
		return policy.Namespace
	}
	return metav1.NamespaceAll
}

// forget is called with the lock held.
func (w *writes) forget(key types.NamespacedName) {
	former, found := w.byPolicy[key]
	if !found {
		return
	}
	service := serviceOf(former.policy)
	delete(w.byPolicy, key)
	if delete(w.byService[service], key); len(w.byService[service]) == 0 {
		delete(w.byService, service)
	}
}

// seen records the state of a policy from the watch, and reports whether it is the last written one.
func (w *writes) seen(policy *networkingv1.NetworkPolicy) (own bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if latest, known := w.latest[w.scope(policy)]; !known || isOlderVersion(latest, policy.ResourceVersion) {
		w.latest[w.scope(policy)] = policy.ResourceVersion
	}
	known, found := w.byPolicy[keyOf(policy)]
	if !found || isOlder(policy, known.policy) {
		return false
	}
	w.forget(keyOf(policy))
	return policy.UID == known.policy.UID && policy.ResourceVersion == known.policy.ResourceVersion
}

// of returns the policies of a Service that were written and not seen yet. Call it before reading the cache: what is
// seen in between is in the cache then.
func (w *writes) of(service types.NamespacedName, now time.Time) []*networkingv1.NetworkPolicy {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []*networkingv1.NetworkPolicy
	for key := range w.byService[service] {
		if known := w.byPolicy[key]; now.Sub(known.at) > writesMemory {
			w.forget(key)
		} else {
			found = append(found, known.policy)
		}
	}
	return found
}

// pending reports whether there are policies of a Service that were written and not seen yet.
func (w *writes) pending(service types.NamespacedName) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.byService[service]) > 0
}

// overlay replaces, in policies as the cache shows them, those that were written since.
func overlay(cached map[types.NamespacedName]*networkingv1.NetworkPolicy, written []*networkingv1.NetworkPolicy) {
	for _, policy := range written {
		if present := cached[keyOf(policy)]; present == nil || isOlder(present, policy) {
			cached[keyOf(policy)] = policy
		}
	}
}

// isOlder reports whether the first policy is an earlier version than the second one. If that is unknown, it returns false.
func isOlder(first, second *networkingv1.NetworkPolicy) bool {
	return isOlderVersion(first.ResourceVersion, second.ResourceVersion)
}

func isOlderVersion(first, second string) bool {
	order, err := resourceversion.CompareResourceVersion(first, second)
	return err == nil && order < 0
}
