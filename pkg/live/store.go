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

// store holds the observations of one kind, as a reflector fills it. It is safe for concurrent use.
type store struct {
	observer observer
	clock    clock.PassiveClock
	// changed is called with the names of objects that may need another decision.
	changed func(types.NamespacedName)
	// healthChanged is called with the origins of objects whose health changed.
	healthChanged func(origin string)
	// renew is called with objects whose checks changed while they were examined; nil if there is no examiner.
	renew func([]types.NamespacedName)
	// follow is called when a stored Deployment may have changed, and its Pods may need counting; nil for other kinds.
	follow func(types.NamespacedName)

	mu      sync.RWMutex
	objects held
	// shown are the resourceVersions up to which the watches have shown everything; see scope.
	shown map[string]string
	// apart says that each namespace has a watch of its own.
	apart bool
}

var _ cache.TransformingStore = &part{}

// Transformer has the reflector reduce objects as soon as they are read, so that a long list is never held in full.
func (s *store) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) { return s.observer.reduce(obj) }
}

// Add takes in an object that was seen.
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

// show stores what a watch has shown, unless a write recorded something newer, and returns how the object changed. It reports whether the
// object has to be examined again.
func (s *store) show(seen *reduced) (_ difference, outdated bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key, observation := seen.key(), seen.observation
	if outdated = s.observer.isOutdated(seen.epoch, observation); outdated {
		observation.forgetHealth()
	}
	s.shown[s.scope(key.Namespace)] = observation.ResourceVersion
	before := s.objects.get(key)
	if before != nil && !newer(observation.ResourceVersion, before.ResourceVersion) && !completes(before, observation) {
		return difference{}, outdated
	}
	return s.put(key, observation), outdated
}

// recordWrite stores the answer to a write, if it is newer than what the watches have shown, and returns how the object changed. The answer
// may be late: if the object does not exist, and its watch has come as far, the object was deleted again.
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

// scope names the watch that shows the objects of a namespace.
func (s *store) scope(namespace string) string {
	if s.apart {
		return namespace
	}
	return metav1.NamespaceAll
}

// difference describes what changed between two observations of an object.
type difference struct {
	// decision is set if the object may need another decision.
	decision bool
	// origins are those for which the health of the object changed.
	origins []string
}

// differenceOf compares what was held of an object with what is to be held; nil is for no object.
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

// differenceOf is like the function. Whether a CustomResourceDefinition is established decides about the objects of its kind, too.
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

// Update takes in an object that was seen.
func (s *store) Update(obj any) error { return s.Add(obj) }

// Delete drops an object that was deleted, or that lost its label, unless a write of ours that certainly came later was recorded.
// If versions cannot be compared, the object is dropped: a needless read costs less than a deletion that is missed.
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
	}
	s.mu.Unlock()
	if known {
		s.notify(seen.key(), differenceOf(held, nil))
	}
	return nil
}

// replace takes in a list of all objects of a namespace, or of all namespaces. It overrules what was recorded before: the watch that
// follows shows it again, and after a restore of etcd older versions may be the right ones.
func (s *store) replace(list []any, resourceVersion, namespace string) error {
	listed := make(map[types.NamespacedName]*reduced, len(list))
	for _, obj := range list {
		seen, err := s.observer.reduce(obj)
		if err != nil {
			return err
		}
		listed[seen.key()] = seen
	}
	differing, outdated := s.exchange(listed, resourceVersion, namespace)
	for key, difference := range differing {
		s.notify(key, difference)
	}
	if len(outdated) > 0 {
		s.renew(outdated)
	}
	return nil
}

// exchange replaces what is held by what is listed. It returns in what objects differ from what they were, and which have to be examined again.
func (s *store) exchange(listed map[types.NamespacedName]*reduced, resourceVersion, namespace string,
) (differing map[types.NamespacedName]difference, outdated []types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown[s.scope(namespace)] = resourceVersion
	differing = map[types.NamespacedName]difference{}
	for key, seen := range listed {
		observation, before := seen.observation, s.objects.get(key)
		if s.observer.isOutdated(seen.epoch, observation) {
			observation.forgetHealth()
			outdated = append(outdated, key)
		}
		inherit(before, observation)
		differing[key] = s.differenceOf(before, observation)
		s.objects.put(key, observation)
	}
	for key := range s.objects {
		if _, still := listed[key]; !still && (namespace == metav1.NamespaceAll || key.Namespace == namespace) {
			differing[key] = differenceOf(s.objects.get(key), nil)
			delete(s.objects, key)
		}
	}
	return differing, outdated
}

// Resync does nothing: the store has no other source.
func (s *store) Resync() error { return nil }

// put holds an observation from now on, and returns in what the object differs from what it was.
func (s *store) put(key types.NamespacedName, observation *Observation) difference {
	before := s.objects.get(key)
	inherit(before, observation)
	difference := s.differenceOf(before, observation)
	if before != nil && !difference.decision {
		observation.Seen = before.Seen
	}
	s.objects.put(key, observation)
	return difference
}

// completes reports whether an observation is of the same state of the object as another one, and has more of it.
func completes(before, observation *Observation) bool {
	return before.ResourceVersion == observation.ResourceVersion && (before.borrowed || !before.Examined) &&
		observation.Examined && !observation.borrowed
}

// inherit keeps what is known of an object's health where an observation says nothing of it, as the answer to a write does:
// what its controller has done is the same as long as the spec is. Pods are counted once for each spec.
func inherit(before, observation *Observation) {
	same := before != nil && before.UID == observation.UID && before.Generation == observation.Generation
	if same && !observation.Replicas.Zero() { // the answer to a write has the metadata alone, and the generation counts changes of replicas
		observation.Replicas = before.Replicas
	}
	switch {
	case same && !observation.Examined && before.Origin != observation.Origin:
		// Another ManagedResource has the object now, and may have another check.
	case same && !observation.Examined:
		observation.Examined, observation.Health, observation.borrowed = before.Examined, before.Health, true
		observation.counted = before.counted
	case !observation.awaitsCount():
	case same && before.counted != nil && *before.counted == observation.Health.OldPods:
		verdict := observation.Health.Counted(before.counted.Replicas)
		observation.counted, observation.Health = before.counted, &verdict
	case same && before.Examined && before.verdict().OldPods == observation.Health.OldPods:
		observation.Health.Progressing = before.Health.Progressing // they are being counted
	default:
		observation.Examined = false
	}
}

// recordCount stores how many Pods a Deployment has.
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
		verdict.OldPods = wanted // to be counted on
	case verdict == health.Verdict{}:
		after.Health, after.counted = nil, &wanted
	default:
		after.counted = &wanted
	}
	s.objects.put(key, &after)
	s.mu.Unlock()
	s.notify(key, differenceOf(before, &after))
}

// drop takes out an object that is known to be gone.
func (s *store) drop(key types.NamespacedName, uid types.UID) {
	s.mu.Lock()
	held := s.objects.get(key)
	known := held != nil && held.UID == uid
	if known {
		delete(s.objects, key)
	}
	s.mu.Unlock()
	if known {
		s.notify(key, difference{}) // the pass that deleted it knows
	}
}

// get returns an object's observation, if there is one.
func (s *store) get(key types.NamespacedName) (observation Observation, found bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if record, found := s.objects[key]; found {
		return record.observation(), true
	}
	return Observation{}, false
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

// newer reports whether a resourceVersion is younger than another one. Those of aggregated APIs need not be comparable; then
// the one that comes later is taken to be.
func newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil || order > 0
}

// surelyNewer reports whether a resourceVersion is younger than another one, and not if they cannot be compared.
func surelyNewer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}
