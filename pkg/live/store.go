package live

import (
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/trellis-k8s/trellis/pkg/fieldowner"
)

// store holds the observations of one kind, as a reflector fills it. It is safe for concurrent use.
type store struct {
	policy fieldowner.Policy
	clock  clock.PassiveClock
	// changed is told the names of objects about which a decision may have to be taken anew.
	changed func(types.NamespacedName)

	mu      sync.RWMutex
	objects map[types.NamespacedName]*Observation
}

var _ cache.TransformingStore = &part{}

// reduced is an object on its way into the store. The ObjectMeta has just the name, for the reflector.
type reduced struct {
	metav1.ObjectMeta
	observation *Observation
}

// Transformer has the reflector reduce objects as soon as they are read, so that a long list is never held in full.
func (s *store) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) { return s.reduce(obj) }
}

func (s *store) reduce(obj any) (*reduced, error) {
	switch obj := obj.(type) {
	case *reduced:
		return obj, nil
	case *metav1.PartialObjectMetadata:
		observation := Observe(obj, s.policy)
		return &reduced{
			ObjectMeta:  metav1.ObjectMeta{Namespace: shared(obj.Namespace), Name: obj.Name},
			observation: &observation,
		}, nil
	}
	return nil, fmt.Errorf("a %T was watched instead of metadata", obj)
}

func (r *reduced) key() types.NamespacedName {
	return types.NamespacedName{Namespace: r.Namespace, Name: r.Name}
}

// Add takes in an object that was seen.
func (s *store) Add(obj any) error {
	seen, err := s.reduce(obj)
	if err != nil {
		return err
	}
	seen.observation.Seen = s.clock.Now().UnixNano()
	if s.put(seen.key(), seen.observation) {
		s.changed(seen.key())
	}
	return nil
}

// Update takes in an object that was seen.
func (s *store) Update(obj any) error { return s.Add(obj) }

// Delete drops an object that was deleted, or that lost its label.
func (s *store) Delete(obj any) error {
	seen, err := s.reduce(obj)
	if err != nil {
		return err
	}
	s.mu.Lock()
	held, known := s.objects[seen.key()]
	known = known && !newer(held.ResourceVersion, seen.observation.ResourceVersion)
	if known {
		delete(s.objects, seen.key())
	}
	s.mu.Unlock()
	if known {
		s.changed(seen.key())
	}
	return nil
}

// replace takes in a list of all objects of some namespaces. It overrules whatever was noted before: the watch that
// follows shows it again, and after a restore of etcd older versions may be the right ones.
func (s *store) replace(list []any, concerns func(types.NamespacedName) bool) error {
	listed := make(map[types.NamespacedName]*Observation, len(list))
	for _, obj := range list {
		seen, err := s.reduce(obj)
		if err != nil {
			return err
		}
		listed[seen.key()] = seen.observation
	}
	for _, key := range s.exchange(listed, concerns) {
		s.changed(key)
	}
	return nil
}

// exchange replaces what is held by what is listed, and returns which objects are not what they were.
func (s *store) exchange(listed map[types.NamespacedName]*Observation, concerns func(types.NamespacedName) bool) []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	var differing []types.NamespacedName
	for key, observation := range listed {
		if old, known := s.objects[key]; !known || !old.Agrees(observation) {
			differing = append(differing, key)
		}
		s.objects[key] = observation
	}
	for key := range s.objects {
		if _, still := listed[key]; !still && concerns(key) {
			differing = append(differing, key)
			delete(s.objects, key)
		}
	}
	return differing
}

// Resync does nothing: there is nothing that could be seen anew.
func (s *store) Resync() error { return nil }

// put takes in an observation, unless a younger one is held. It tells whether a decision may have to be taken anew.
func (s *store) put(key types.NamespacedName, observation *Observation) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, known := s.objects[key]
	if known && !newer(observation.ResourceVersion, before.ResourceVersion) {
		return false
	}
	agrees := known && before.Agrees(observation)
	if agrees {
		observation.Seen = before.Seen
	}
	s.objects[key] = observation
	return !agrees
}

// drop takes out an object that is known to be gone.
func (s *store) drop(key types.NamespacedName, uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if held, known := s.objects[key]; known && held.UID == uid {
		delete(s.objects, key)
	}
}

// get returns an object's observation, nil if there is none.
func (s *store) get(key types.NamespacedName) *Observation {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.objects[key]
}

func (s *store) size() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.objects)
}

// newer tells whether a resourceVersion is younger than another one. Those of aggregated APIs need not be comparable; then
// the one that comes later is taken to be.
func newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil || order > 0
}
