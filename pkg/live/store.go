package live

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/trellis-k8s/trellis/pkg/health"
)

// store contains the observations of the objects of one kind. Reflectors fill it. It is safe for concurrent use.
type store struct {
	observer observer
	clock    clock.PassiveClock
	// changed is called with the names of objects that may require another decision.
	changed func(types.NamespacedName)
	// healthChanged is called with the origins of objects whose health has changed.
	healthChanged func(origin string)
	// renew is called with objects whose checks have changed during their examination. It is nil if there is no examiner.
	renew func([]types.NamespacedName)
	// follow is called when a stored Deployment may have changed and its Pods may have to be counted. It is nil for other
	// kinds.
	follow func(types.NamespacedName)

	mu      sync.RWMutex
	objects held
	// finished are Jobs that no longer exist.
	finished finishedJobs
	// shown are the resourceVersions up to which the watches have shown all changes, by scope.
	shown map[string]string
	// perNamespace is set if each namespace has its own watch.
	perNamespace bool
}

var _ cache.TransformingStore = &part{}

// Transformer makes the reflector reduce objects as soon as they are read, so that a long list is never in memory as a
// whole.
func (s *store) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) { return s.observer.reduce(obj) }
}

// Add stores an object from a watch.
func (s *store) Add(obj any) error {
	seen, err := s.observer.reduce(obj)
	if err != nil {
		return err
	}
	seen.observation.Seen = s.clock.Now().UnixNano()
	difference, outdated := s.show(seen)
	s.notify(seen.key(), difference)
	if outdated {
		s.renew([]types.NamespacedName{seen.key()})
	}
	return nil
}

// show stores an object from a watch, unless the store contains a newer write. It returns how the object has changed,
// and whether the object has to be examined again.
func (s *store) show(seen *reduced) (_ difference, outdated bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key, observation := seen.key(), seen.observation
	if outdated = s.observer.isOutdated(seen.epoch, observation); outdated {
		observation.clearHealth()
	}
	s.shown[s.scope(key.Namespace)] = observation.ResourceVersion
	before := s.objects.get(key)
	if before != nil && !newer(observation.ResourceVersion, before.ResourceVersion) && !completes(before, observation) {
		return difference{}, outdated
	}
	return s.put(key, observation), outdated
}

// recordWrite stores the response to a write if it is newer than the state from the watches, and returns how the object
// has changed. The response may be late: if the object does not exist in the store and its watch has reached this
// version, the object was deleted again.
func (s *store) recordWrite(key types.NamespacedName, observation *Observation) difference {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.objects.get(key)
	shown, synced := s.shown[s.scope(key.Namespace)]
	switch {
	case before == nil && synced && !surelyNewer(observation.ResourceVersion, shown):
		return difference{}
	case before != nil && !surelyNewer(observation.ResourceVersion, before.ResourceVersion) && !completes(before, observation):
		return difference{}
	}
	return s.put(key, observation)
}

// scope returns the key of the watch that covers a namespace.
func (s *store) scope(namespace string) string {
	if s.perNamespace {
		return namespace
	}
	return metav1.NamespaceAll
}

// difference is the difference between two observations of an object.
type difference struct {
	// decision is set if the object may require another decision.
	decision bool
	// origins are the origins for which the health of the object has changed.
	origins []string
}

// differenceOf compares two observations of an object. Nil means that the object does not exist.
func differenceOf(before, after *Observation) difference {
	switch {
	case before == nil && after == nil:
		return difference{}
	case before == nil:
		return difference{decision: true, origins: []string{after.Origin}}
	case after == nil:
		return difference{decision: true, origins: []string{before.Origin}}
	}
	result := difference{decision: !before.Agrees(after)}
	if !before.sameHealth(after) {
		result.origins = []string{after.Origin}
		if before.Origin != after.Origin {
			result.origins = append(result.origins, before.Origin)
		}
	}
	return result
}

// differenceOf extends the function: the health of a CustomResourceDefinition also requires another decision, because
// it determines whether the objects of its kind can be applied.
func (s *store) differenceOf(before, after *Observation) difference {
	result := differenceOf(before, after)
	if s.observer.gk == definitions && before != nil && after != nil && !before.sameHealth(after) {
		result.decision = true
	}
	return result
}

func (s *store) notify(key types.NamespacedName, difference difference) {
	if s.follow != nil {
		s.follow(key)
	}
	if difference.decision {
		s.changed(key)
	}
	for _, origin := range difference.origins {
		s.healthChanged(origin)
	}
}

// Update stores an object from a watch.
func (s *store) Update(obj any) error { return s.Add(obj) }

// Delete removes an object that was deleted or lost its label, unless a certainly later write of this process was
// recorded. If the versions cannot be compared, the object is removed, because an unnecessary read costs less than a
// missed deletion.
func (s *store) Delete(obj any) error {
	seen, err := s.observer.reduce(obj)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.shown[s.scope(seen.Namespace)] = seen.observation.ResourceVersion
	held := s.objects.get(seen.key())
	known := held != nil && !surelyNewer(held.ResourceVersion, seen.observation.ResourceVersion)
	if known {
		delete(s.objects, seen.key())
		if held.Finished || seen.observation.Finished {
			s.finished.add(seen.key(), s.clock.Now())
		}
	}
	s.mu.Unlock()
	if known {
		s.notify(seen.key(), differenceOf(held, nil))
	}
	return nil
}

// replace stores a list of all objects of a namespace, or of all namespaces. It overrides earlier writes: the following
// watch shows them again, and after a restore of etcd, older versions may be the correct ones.
func (s *store) replace(list []any, resourceVersion, namespace string) error {
	listed := make(map[types.NamespacedName]*reduced, len(list))
	for _, obj := range list {
		seen, err := s.observer.reduce(obj)
		if err != nil {
			return err
		}
		listed[seen.key()] = seen
	}
	differing, outdated := s.replaceAll(listed, resourceVersion, namespace)
	for key, difference := range differing {
		s.notify(key, difference)
	}
	if len(outdated) > 0 {
		s.renew(outdated)
	}
	return nil
}

// replaceAll replaces the stored objects with the listed ones. It returns the differences, and the objects that have to
// be examined again.
func (s *store) replaceAll(listed map[types.NamespacedName]*reduced, resourceVersion, namespace string,
) (differing map[types.NamespacedName]difference, outdated []types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown[s.scope(namespace)] = resourceVersion
	differing = map[types.NamespacedName]difference{}
	for key, seen := range listed {
		observation, before := seen.observation, s.objects.get(key)
		if s.observer.isOutdated(seen.epoch, observation) {
			observation.clearHealth()
			outdated = append(outdated, key)
		}
		inherit(before, observation)
		differing[key] = s.differenceOf(before, observation)
		delete(s.finished, key)
		s.objects.put(key, observation)
	}
	for key := range s.objects {
		if _, still := listed[key]; !still && (namespace == metav1.NamespaceAll || key.Namespace == namespace) {
			before := s.objects.get(key)
			if before.Finished {
				s.finished.add(key, s.clock.Now())
			}
			differing[key] = differenceOf(before, nil)
			delete(s.objects, key)
		}
	}
	return differing, outdated
}

// Resync does nothing, because the store has no other source.
func (s *store) Resync() error { return nil }

// put stores an observation, and returns its difference to the previous one.
func (s *store) put(key types.NamespacedName, observation *Observation) difference {
	before := s.objects.get(key)
	inherit(before, observation)
	difference := s.differenceOf(before, observation)
	if before != nil && !difference.decision {
		observation.Seen = before.Seen
	}
	delete(s.finished, key)
	s.objects.put(key, observation)
	return difference
}

// completes reports whether an observation has the same resourceVersion as another one and, other than that one, was
// examined.
func completes(before, observation *Observation) bool {
	return before.ResourceVersion == observation.ResourceVersion && (before.borrowed || !before.Examined) &&
		observation.Examined && !observation.borrowed
}

// inherit keeps the known health of an object if the new observation does not contain it, such as in the response to a
// write: the status that its controller has reported stays valid as long as the spec is the same. Pods are counted once
// for each spec.
func inherit(before, observation *Observation) {
	if before != nil && before.UID == observation.UID {
		observation.Finished = observation.Finished || before.Finished // a Job does not run again
	}
	same := before != nil && before.UID == observation.UID && before.Generation == observation.Generation
	if same && !observation.Replicas.Zero() { // the response to a write has only metadata; changed replicas change the generation
		observation.Replicas = before.Replicas
	}
	switch {
	case same && !observation.Examined && before.Origin != observation.Origin:
		// Another ManagedResource owns the object now, and may have another check.
	case same && !observation.Examined:
		observation.Examined, observation.Health, observation.borrowed = before.Examined, before.Health, true
		observation.counted = before.counted
	case !observation.awaitsCount():
	case same && before.counted != nil && *before.counted == observation.Health.OldPods:
		verdict := observation.Health.Counted(before.counted.Replicas)
		observation.counted, observation.Health = before.counted, &verdict
	case same && before.Examined && before.verdict().OldPods == observation.Health.OldPods:
		observation.Health.Progressing = before.Health.Progressing // the count is in progress
	default:
		observation.Examined = false
	}
}

// recordCount stores the number of Pods of a Deployment.
func (s *store) recordCount(key types.NamespacedName, uid types.UID, wanted health.PodCount, found int) {
	s.mu.Lock()
	before := s.objects.get(key)
	if !before.awaitsCount() || before.UID != uid || before.Health.OldPods != wanted {
		s.mu.Unlock()
		return
	}
	after, verdict := *before, before.Health.Counted(int32(found)) //nolint:gosec // there are fewer Pods
	after.Examined, after.Health = true, &verdict
	switch {
	case found != int(wanted.Replicas):
		verdict.OldPods = wanted // continue to count
	case verdict == health.Verdict{}:
		after.Health, after.counted = nil, &wanted
	default:
		after.counted = &wanted
	}
	s.objects.put(key, &after)
	s.mu.Unlock()
	s.notify(key, differenceOf(before, &after))
}

// drop removes an object that is known to be deleted.
func (s *store) drop(key types.NamespacedName, uid types.UID) {
	s.mu.Lock()
	held := s.objects.get(key)
	known := held != nil && held.UID == uid
	if known {
		delete(s.objects, key)
	}
	s.mu.Unlock()
	if known {
		s.notify(key, difference{}) // the pass that deleted it does not need the event
	}
}

// get returns the observation of an object, if there is one.
func (s *store) get(key types.NamespacedName) (observation Observation, found bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if record, found := s.objects[key]; found {
		return record.observation(), true
	}
	return Observation{}, false
}

// hasFinished reports whether a Job was deleted after it had finished.
func (s *store) hasFinished(key types.NamespacedName) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, found := s.finished[key]
	return found
}

// has reports whether there is an observation of an object.
func (s *store) has(key types.NamespacedName) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, found := s.objects[key]
	return found
}

func (s *store) size() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.objects)
}

// newer reports whether a resourceVersion is newer than another one. It returns true if they cannot be compared, which
// is possible for aggregated APIs.
func newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil || order > 0
}

// surelyNewer reports whether a resourceVersion is newer than another one. It returns false if they cannot be compared.
func surelyNewer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}
