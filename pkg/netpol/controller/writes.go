package controller

import (
	"sync"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// writesMemory is how long a write counts that the watch has not shown.
const writesMemory = 10 * time.Second

// writes remembers policies as they were after they had been written until the watch shows them, so that nothing is written
// twice. It is safe for concurrent use.
type writes struct {
	mu       sync.Mutex
	byPolicy map[types.NamespacedName]written
	// byService has the same by Service.
	byService map[types.NamespacedName]map[types.NamespacedName]bool
}

type written struct {
	policy *networkingv1.NetworkPolicy
	at     time.Time
}

func newWrites() *writes {
	return &writes{
		byPolicy: map[types.NamespacedName]written{}, byService: map[types.NamespacedName]map[types.NamespacedName]bool{},
	}
}

// note takes in a reduced policy that was written.
func (w *writes) note(policy *networkingv1.NetworkPolicy, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget(keyOf(policy))
	w.byPolicy[keyOf(policy)] = written{policy: policy, at: now}
	service := serviceOf(policy)
	if w.byService[service] == nil {
		w.byService[service] = map[types.NamespacedName]bool{}
	}
	w.byService[service][keyOf(policy)] = true
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

// seen takes in what the watch shows of a policy, and tells whether it is what was written last.
func (w *writes) seen(policy *networkingv1.NetworkPolicy) (own bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	known, found := w.byPolicy[keyOf(policy)]
	if !found || isOlder(policy, known.policy) {
		return false
	}
	w.forget(keyOf(policy))
	return policy.UID == known.policy.UID && policy.ResourceVersion == known.policy.ResourceVersion
}

// overlay replaces, in the policies of a Service as the cache shows them, those that were written since.
func (w *writes) overlay(service types.NamespacedName, cached map[types.NamespacedName]*networkingv1.NetworkPolicy, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key := range w.byService[service] {
		known := w.byPolicy[key]
		if now.Sub(known.at) > writesMemory {
			w.forget(key)
		} else if present := cached[key]; present == nil || isOlder(present, known.policy) {
			cached[key] = known.policy
		}
	}
}

// isOlder tells whether the first policy is an earlier version than the second one. If that cannot be told, it is not.
func isOlder(first, second *networkingv1.NetworkPolicy) bool {
	order, err := resourceversion.CompareResourceVersion(first.ResourceVersion, second.ResourceVersion)
	return err == nil && order < 0
}
