package cachetransform

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"unique"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// pooledMaps is how many different sets of labels or annotations a Compactor knows, to hold them once for all objects that have them.
const pooledMaps = 4096

// Compactor makes ManagedResources small before a cache keeps them: nearly all of their memory is inventory, in which most
// strings and labels repeat. It is safe for concurrent use.
type Compactor struct {
	mu   sync.Mutex
	pool map[string]map[string]string
}

// NewCompactor returns a Compactor.
func NewCompactor() *Compactor {
	return &Compactor{pool: map[string]map[string]string{}}
}

// Compact drops who owns which field of a ManagedResource, and lets its inventory and conditions share memory with others. The result must
// not be changed. Objects of other types are returned as they are. It never fails; it is a transform of a cache.
func (c *Compactor) Compact(obj any) (any, error) {
	mr, ok := obj.(*resourcesv1alpha1.ManagedResource)
	if !ok {
		return obj, nil
	}
	mr.ManagedFields = nil
	resources := make([]resourcesv1alpha1.ObjectReference, len(mr.Status.Resources)) // a decoder's slices have room for more
	for i, entry := range mr.Status.Resources {
		entry.APIVersion, entry.Kind, entry.Namespace = Intern(entry.APIVersion), Intern(entry.Kind), Intern(entry.Namespace)
		entry.Labels, entry.Annotations = c.Share(entry.Labels), c.Share(entry.Annotations)
		resources[i] = entry
	}
	mr.Status.Resources = resources
	conditions := make([]resourcesv1alpha1.Condition, len(mr.Status.Conditions))
	for i, condition := range mr.Status.Conditions {
		condition.Type, condition.Status = unique.Make(condition.Type).Value(), unique.Make(condition.Status).Value()
		condition.Reason, condition.Message = Intern(condition.Reason), Intern(condition.Message)
		conditions[i] = condition
	}
	if mr.Status.Conditions != nil {
		mr.Status.Conditions = conditions
	}
	return mr, nil
}

// Share returns a map that is equal to the given one and that all objects with equal ones hold together; nil for an empty one. It must not be
// changed.
func (c *Compactor) Share(values map[string]string) map[string]string {
	if len(values) == 0 {
		return nil
	}
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(values)) {
		text.WriteString(key + "\x00" + values[key] + "\x00")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if pooled, known := c.pool[text.String()]; known {
		return pooled
	}
	if len(c.pool) == pooledMaps {
		clear(c.pool) // those that repeat come again, and those of one owner come together
	}
	c.pool[text.String()] = values
	return values
}
