package cachetransform

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"unique"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// pooledMaps is the maximum number of different sets of labels or annotations that a Compactor stores.
const pooledMaps = 4096

// Compactor reduces the memory of ManagedResources in a cache. Nearly all of it is inventory, in which most strings and
// labels repeat. It is safe for concurrent use.
type Compactor struct {
	mu   sync.Mutex
	pool map[string]map[string]string
}

// NewCompactor returns a Compactor.
func NewCompactor() *Compactor {
	return &Compactor{pool: map[string]map[string]string{}}
}

// Compact removes the managed fields of a ManagedResource, and makes its inventory and conditions share memory with
// others. The result must not be changed. Objects of other types are returned unchanged. Compact is a transform of a
// cache and never fails.
func (c *Compactor) Compact(obj any) (any, error) {
	mr, ok := obj.(*resourcesv1alpha1.ManagedResource)
	if !ok {
		return obj, nil
	}
	mr.ManagedFields = nil
	resources := make([]resourcesv1alpha1.ObjectReference, len(mr.Status.Resources)) // slices of a decoder have spare capacity
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

// Share returns an equal map that is shared by all objects with equal maps; nil for an empty one. It must not be
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
		clear(c.pool) // maps that repeat are soon added again, and those of one owner are added together
	}
	c.pool[text.String()] = values
	return values
}
