package controller

import (
	"sync"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// writesMemory is how long a write is remembered that the watch does not show.
const writesMemory = time.Minute

// writes remembers written policies until the watch shows them, so that they are not written twice. It is safe for
// concurrent use.
type writes struct {
	mu       sync.Mutex
	byPolicy map[types.NamespacedName]written
	// byService has the keys of byPolicy, by Service.
	byService map[types.NamespacedName]map[types.NamespacedName]bool
	// latest is the newest resourceVersion that each watch has shown. An older policy that is not in the cache has been
	// deleted again.
	latest map[string]string
	// apart is set if each namespace has its own watch.
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

// record remembers a written, reduced policy, unless it is outdated. The response to a write may arrive after the watch
// has shown the policy or its later deletion, or after a later write for another Service. Shown returns the policy in
// the cache, or nil. It is called with the lock held. Events need the lock too, so no event is missed meanwhile.
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

// scope identifies the watch that shows a policy.
func (w *writes) scope(policy *networkingv1.NetworkPolicy) string {
	if w.apart {
		return policy.Namespace
	}
	return metav1.NamespaceAll
}

// forget removes a policy. The lock must be held.
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

// seen records the state of a policy from the watch, and reports whether it is the last written state.
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

// of returns the written policies of a Service that the watch has not shown yet. Call it before reading the cache, so
// that policies that are shown between the two calls are found in the cache.
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

// pending reports whether the watch has not shown all written policies of a Service.
func (w *writes) pending(service types.NamespacedName) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.byService[service]) > 0
}

// overlay adds the policies that were written since to those in the cache.
func overlay(cached map[types.NamespacedName]*networkingv1.NetworkPolicy, written []*networkingv1.NetworkPolicy) {
	for _, policy := range written {
		if present := cached[keyOf(policy)]; present == nil || isOlder(present, policy) {
			cached[keyOf(policy)] = policy
		}
	}
}

// isOlder reports whether the first policy is an older version than the second one. It returns false if the versions
// cannot be compared.
func isOlder(first, second *networkingv1.NetworkPolicy) bool {
	return isOlderVersion(first.ResourceVersion, second.ResourceVersion)
}

func isOlderVersion(first, second string) bool {
	order, err := resourceversion.CompareResourceVersion(first, second)
	return err == nil && order < 0
}
